// For each layer it is known how many outputs can be computed from the frames that came, and which of them the next
// outputs still read; those are copied out, so that a short tail does not keep a long window alive.
#include "convssm/metrics/i3d_stream.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/metrics/i3d_layout.h"

namespace convssm::metrics {

I3dStream::I3dStream(const std::vector<TimeKernel>& layers, int64_t frames, Run run, Sink sink)
    : run_(std::move(run)), sink_(std::move(sink)) {
  for (const TimeKernel& kernel : layers) {
    Layer layer{};
    layer.kernel = kernel;
    layer.frames = frames;
    layer.outputs = (frames + kernel.stride - 1) / kernel.stride;
    layer.padding = same_padding(frames, kernel.size, kernel.stride).front;
    frames = layer.outputs;
    layers_.push_back(std::move(layer));
  }
}

// How many outputs can be computed when the frames before `end` are known.
int64_t I3dStream::Layer::ready(int64_t end) const {
  if (end == frames) return outputs;
  const int64_t room = end - kernel.size + padding;
  return room < 0 ? 0 : room / kernel.stride + 1;
}

void I3dStream::advance(size_t index, at::Tensor x) {
  if (index == layers_.size()) return sink_(x);
  Layer& layer = layers_[index];
  layer.held = layer.held.defined() ? at::cat({layer.held, x}, 1) : std::move(x);
  x.reset();
  const int64_t end = layer.first + layer.held.size(1), ready = layer.ready(end);
  if (ready <= layer.next) return;

  const int64_t begin = layer.begin(layer.next), stop = layer.begin(ready - 1) + layer.kernel.size;
  const int64_t front = std::max<int64_t>(-begin, 0), back = std::max<int64_t>(stop - layer.frames, 0);
  at::Tensor out = run_(index, layer.held.slice(1, begin + front - layer.first, stop - back - layer.first).contiguous(),
                        front, back);

  const int64_t keep = std::clamp<int64_t>(layer.begin(ready), layer.first, end);
  const bool finished = ready == layer.outputs || keep == end;
  layer.held = finished ? at::Tensor() : layer.held.slice(1, keep - layer.first).clone();
  layer.first = finished ? end : keep;
  layer.next = ready;
  advance(index + 1, std::move(out));
}

}  // namespace convssm::metrics
