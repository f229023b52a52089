// A tokenizer knows no time, so a clip is cut where memory wants it: the codes are the same.
#include "convssm/run/encode.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/data/write_codes.h"
#include "convssm/models/tokenizer.h"

namespace convssm::run {
namespace {

constexpr int64_t frames_at_once = 64;

int64_t frames_of(const data::Dataset& dataset, const data::WriteOptions& o, uint64_t index) {
  if (o.frames == 0) return dataset.length(o.split, index);
  return std::min(o.frames, dataset.length(o.split, index));
}

void check(const data::Dataset& dataset, const data::WriteOptions& o) {
  if (!dataset.codes().none()) fail(ErrorKind::usage, "[data encode] the clips hold codes already, not frames");
  if (o.frames == 0 && dataset.longest(o.split) == data::any_length) {
    fail(ErrorKind::usage, "[data encode] clips of this dataset can have any length; give --frames");
  }
  if (o.clips > dataset.size(o.split)) {
    fail(ErrorKind::usage, "[data encode] {} clips are asked for, the dataset has {} for {}", o.clips,
         dataset.size(o.split), data::name(o.split));
  }
}

}  // namespace

int64_t count_encoded_frames(const data::Dataset& dataset, const data::WriteOptions& o) {
  check(dataset, o);
  int64_t frames = 0;
  for (uint64_t i = 0; i < o.clips; ++i) frames += frames_of(dataset, o, i);
  return frames;
}

uint64_t encode_clips(models::Model& model, const data::Dataset& dataset, const data::WriteOptions& options,
                      const std::function<void(int64_t)>& progress) {
  models::Tokenizer* tokenizer = model.as_tokenizer();
  if (tokenizer == nullptr) {
    fail(ErrorKind::usage, "[data encode] a tokenizer is needed (model.name: vqgan), this is {}", model.description());
  }
  if (tokenizer->continuous()) {
    fail(ErrorKind::usage,
         "[data encode] a tokenizer of codes is needed, this one makes numbers (quantizer kl): {}. Models of its "
         "latents "
         "train on the frames",
         model.description());
  }
  check(dataset, options);
  data::WriteOptions o = options;
  o.workers = 1;  // the tokenizer has all threads
  const at::NoGradGuard no_grad;
  const models::EvalMode mode(model);
  const models::CodeFormat format = tokenizer->codes();
  const std::string hash = models::hash_of(model.tokenizer_part());
  const at::Device device = models::device_of(model);
  int64_t done = 0;  // frames of clips before the current one
  const auto encode = [&](uint64_t index, const std::string& path) {
    const int64_t frames = frames_of(dataset, o, index);
    const at::Tensor codes = at::empty({frames, format.height, format.width}, at::kLong);
    std::vector<at::Tensor> actions;
    for (int64_t first = 0; first < frames; first += frames_at_once) {
      const int64_t count = std::min(frames_at_once, frames - first);
      const data::Clips chunk = dataset.part(o.split, index, first, count);
      codes.slice(0, first, first + count).copy_(tokenizer->encode(chunk.video.to(device))[0]);
      if (chunk.actions.defined()) actions.push_back(chunk.actions[0]);
      progress(done + first + count);
    }
    data::write_codes(path, codes, actions.empty() ? at::Tensor() : at::cat(actions), format.count,
                      dataset.revisits(o.split, index, frames), hash);
  };
  return data::write_clip_files(o, encode, [&](uint64_t clips) {
    done += frames_of(dataset, o, clips - 1);
    progress(done);
  });
}

}  // namespace convssm::run
