// A frame is colour, then crop and resizing along rows, then along columns, in double: each output pixel is a weighted sum of
// a few neighbours, whose weights are computed once per call. Plain loops, because threads of the loader run this.
#include "convssm/data/frame_view.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/option_reader.h"
#include "convssm/data/numbers.h"

namespace convssm::data {
namespace {

struct Part {
  int64_t first, count;
};

// `weights` of the pixels from `first` on.
struct Weights {
  int64_t first;
  std::vector<double> weights;
};

// The middle of a side that is `length` long, if height/width shall be as those of the view.
Part middle(const FrameView& view, int64_t length, int64_t other, int64_t own_target, int64_t other_target) {
  if (!view.crop_center) return {0, length};
  const double fitting =
      static_cast<double>(other) * static_cast<double>(own_target) / static_cast<double>(other_target);
  const int64_t count = std::clamp<int64_t>(std::llround(fitting), 1, length);
  return {(length - count) / 2, count};
}

std::vector<Weights> area_weights(const Part& part, int64_t target) {
  std::vector<Weights> all;
  const double scale = static_cast<double>(part.count) / static_cast<double>(target);
  for (int64_t i = 0; i < target; ++i) {
    const double from = static_cast<double>(i) * scale, to = static_cast<double>(i + 1) * scale;
    const auto first = std::min(static_cast<int64_t>(from), part.count - 1);
    Weights one{part.first + first, {}};
    for (int64_t k = first; k < part.count && static_cast<double>(k) < to - 1e-9 * scale; ++k) {
      const double covered = std::min(to, static_cast<double>(k + 1)) - std::max(from, static_cast<double>(k));
      one.weights.push_back(std::max(covered, 0.0) / scale);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<Weights> bilinear_weights(const Part& part, int64_t target) {
  std::vector<Weights> all;
  const double scale = static_cast<double>(part.count) / static_cast<double>(target);
  for (int64_t i = 0; i < target; ++i) {
    const double at =
        std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, static_cast<double>(part.count - 1));
    const auto first = static_cast<int64_t>(at);
    const double rest = at - static_cast<double>(first);
    all.push_back({part.first + first, rest > 0 ? std::vector{1 - rest, rest} : std::vector{1.0}});
  }
  return all;
}

std::vector<Weights> weights_of(const FrameView& view, const Part& part, int64_t target) {
  return view.resize == Resize::area ? area_weights(part, target) : bilinear_weights(part, target);
}

// One channel of a frame.
struct Plane {
  std::vector<double> values;
  int64_t height, width;
};

Plane resized(const Plane& plane, const std::vector<Weights>& rows, const std::vector<Weights>& columns) {
  const auto width = std::ssize(columns), height = std::ssize(rows);
  std::vector<double> narrow(static_cast<size_t>(plane.height * width));
  for (int64_t y = 0; y < plane.height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const Weights& w = columns[static_cast<size_t>(x)];
      const double* from = plane.values.data() + y * plane.width + w.first;
      double sum = 0;
      for (size_t k = 0; k < w.weights.size(); ++k) sum += w.weights[k] * from[k];
      narrow[static_cast<size_t>(y * width + x)] = sum;
    }
  }
  Plane out{std::vector<double>(static_cast<size_t>(height * width)), height, width};
  for (int64_t y = 0; y < height; ++y) {
    const Weights& w = rows[static_cast<size_t>(y)];
    double* to = out.values.data() + y * width;
    for (size_t k = 0; k < w.weights.size(); ++k) {
      const double* from = narrow.data() + (w.first + static_cast<int64_t>(k)) * width;
      for (int64_t x = 0; x < width; ++x) to[x] += w.weights[k] * from[x];
    }
  }
  return out;
}

// The channels of a frame [C,H,W] in the colours of the view.
template <typename T>
std::vector<Plane> planes_of(const FrameView& view, const T* frame, const FrameSize& size) {
  const int64_t pixels = size.height * size.width;
  std::vector<Plane> planes;
  for (int64_t c = 0; c < size.channels; ++c) {
    Plane plane{std::vector<double>(static_cast<size_t>(pixels)), size.height, size.width};
    for (int64_t p = 0; p < pixels; ++p) plane.values[static_cast<size_t>(p)] = number(frame[c * pixels + p]);
    planes.push_back(std::move(plane));
  }
  if (view.colour == Colour::grey && size.channels == 3) {  // ITU-R BT.601, as most programs do
    for (size_t p = 0; p < static_cast<size_t>(pixels); ++p) {
      planes[0].values[p] = 0.299 * planes[0].values[p] + 0.587 * planes[1].values[p] + 0.114 * planes[2].values[p];
    }
    planes.resize(1);
  }
  if (view.colour == Colour::rgb && size.channels == 1) planes.resize(3, planes[0]);
  return planes;
}

template <typename T>
T stored(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value >= 0.5;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return static_cast<T>(std::llround(value));
  }
}

template <typename T, typename Out>
void view_frames(const FrameView& view, std::span<const T> frames, const FrameSize& from, const FrameSize& to,
                 std::span<Out> out) {
  std::vector<Weights> rows, columns;
  if (view.changes_size()) {
    rows = weights_of(view, middle(view, from.height, from.width, to.height, to.width), to.height);
    columns = weights_of(view, middle(view, from.width, from.height, to.width, to.height), to.width);
  }
  const int64_t each = from.channels * from.height * from.width;
  size_t at = 0;
  for (int64_t t = 0; t < std::ssize(frames) / each; ++t) {
    for (Plane& plane : planes_of(view, frames.data() + t * each, from)) {
      if (view.changes_size()) plane = resized(plane, rows, columns);
      for (const double value : plane.values) out[at++] = stored<Out>(value);
    }
  }
}

template <typename T>
T parse(const char* option, const std::string& text, std::initializer_list<std::pair<const char*, T>> known) {
  std::string names;
  for (const auto& [name, value] : known) {
    if (text == name) return value;
    names += names.empty() ? name : fmt::format(", {}", name);
  }
  fail(ErrorKind::usage, "[folder] {} is one of {}, got '{}'", option, names, text);
}

// Height and width from `size`.
void set_size(FrameView& view, const std::vector<double>& size) {
  constexpr double most = 1 << 14;
  if (size.size() > 2)
    fail(ErrorKind::usage, "[folder] size is [height, width] or one number, got {} numbers", size.size());
  for (const double side : size) {
    if (side != std::floor(side) || side < 1 || side > most) {
      fail(ErrorKind::usage, "[folder] size must be whole numbers, 1 to {}, got {}", most, side);
    }
  }
  if (size.empty()) return;
  view.height = static_cast<int64_t>(size.front()), view.width = static_cast<int64_t>(size.back());
}

}  // namespace

void FrameView::read_options(OptionReader& read) {
  read("stride", stride);
  read("stride_actions", [this](const std::string& text) {
    stride_actions =
        parse<StrideActions>("stride_actions", text, {{"last", StrideActions::last}, {"sum", StrideActions::sum}});
  });
  std::vector<double> size;  // a list or one number
  read("size", size);
  set_size(*this, size);
  read("crop_center", crop_center);
  read("resize", [this](const std::string& text) {
    resize = parse<Resize>("resize", text, {{"area", Resize::area}, {"bilinear", Resize::bilinear}});
  });
  read("colour", [this](const std::string& text) {
    colour = parse<Colour>("colour", text, {{"keep", Colour::keep}, {"grey", Colour::grey}, {"rgb", Colour::rgb}});
  });
  check();
}

void FrameView::check() const {
  if (stride < 1) fail(ErrorKind::usage, "[folder] stride must be at least 1, got {}", stride);
  if (height < 0 || width < 0 || (height == 0) != (width == 0)) {
    fail(ErrorKind::usage, "[folder] height and width must both be positive or 0, got {} and {}", height, width);
  }
  if (crop_center && !changes_size()) {
    fail(ErrorKind::usage, "[folder] crop_center takes the part that has the proportions of size: set size too");
  }
}

FrameSize size_in_view(const FrameView& view, const FrameSize& frame, const std::string& file) {
  if (view.colour != Colour::keep && frame.channels != 1 && frame.channels != 3) {
    fail(ErrorKind::data, "[folder] '{}': colour {} needs frames of 1 or 3 channels, found {}; set colour: keep", file,
         view.colour == Colour::grey ? "grey" : "rgb", frame.channels);
  }
  const int64_t channels = view.colour == Colour::keep ? frame.channels : view.colour == Colour::grey ? 1 : 3;
  if (!view.changes_size()) return {channels, frame.height, frame.width};
  return {channels, view.height, view.width};
}

io::DType dtype_in_view(const FrameView& view, io::DType dtype) {
  const bool half = dtype == io::DType::f16 || dtype == io::DType::bf16;
  return view.changes_frames() && half ? io::DType::f32 : dtype;
}

io::Array frames_in_view(const FrameView& view, const io::Array& frames, const std::string& file) {
  if (!view.changes_frames()) return frames;
  const std::vector<int64_t>& shape = frames.shape();
  const FrameSize from{shape[1], shape[2], shape[3]}, to = size_in_view(view, from, file);
  io::Array out(dtype_in_view(view, frames.dtype()), {shape[0], to.channels, to.height, to.width});
  with_numbers(frames, [&](auto values) {
    using T = std::remove_const_t<typename decltype(values)::element_type>;
    if constexpr (std::is_arithmetic_v<T>) {
      view_frames<T, T>(view, values, from, to, out.values<T>());
    } else {
      view_frames<T, float>(view, values, from, to, out.values<float>());
    }
  });
  return out;
}

}  // namespace convssm::data
