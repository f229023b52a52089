#include "convssm/data/masked_recording.h"

#include <ATen/ATen.h>

#include <limits>

#include "convssm/base/error.h"
#include "convssm/data/array_choice.h"
#include "convssm/data/numbers.h"

namespace convssm::data {
namespace {

// Of numbers among which there is NaN.
io::DType float_type(io::DType dtype) {
  if (io::is_float(dtype)) return dtype;
  return io::dtype_size(dtype) <= 2 ? io::DType::f32 : io::DType::f64;
}

RecordingInfo masked_info(RecordingInfo info, const RecordingOptions& o) {
  if (info.kind == "animation" || reads_codes(info.key, info.reading.content)) {
    fail(ErrorKind::usage, "[folder] '{}': no pixel of videos and codes is missing; leave data.missing{} out",
         info.path, o.missing_value ? "_value" : "");
  }
  if (!o.missing_value && !io::is_float(info.dtype)) {
    fail(ErrorKind::usage,
         "[folder] '{}' holds {}, where data.missing=mask finds no NaN; say which number stands for missing pixels, as "
         "data.missing_value=255",
         info.path, io::dtype_name(info.dtype));
  }
  info.notes.push_back(fmt::format("pixels that are {} were not measured: they are left out of the loss and of scores",
                                   o.missing_value ? fmt::format("{} or NaN", *o.missing_value) : "NaN"));
  if (o.missing_value) info.dtype = float_type(info.dtype), info.always_bytes = false;
  info.may_miss = true;
  return info;
}

class MaskedRecording : public Recording {
 public:
  MaskedRecording(std::unique_ptr<Recording> inner, const RecordingOptions& options)
      : Recording(masked_info(inner->info(), options), nullptr),
        inner_(std::move(inner)),
        missing_(options.missing_value) {}

 protected:
  io::Array frames(int64_t clip, int64_t first, int64_t count) override {
    const io::Array stored = inner_->read(clip, first, count);
    io::Array all = io::array_of_file(info().path, info().dtype, stored.shape());
    if (info().dtype == io::DType::f64) {
      put(stored, all.values<double>());
    } else if (info().dtype == io::DType::f32) {
      put(stored, all.values<float>());
    } else {
      return in_order(stored);  // 16-bit floats, as they are
    }
    return in_order(all);
  }

  at::Tensor actions(int64_t clip, int64_t first, int64_t count) override {
    return inner_->read_actions(clip, first, count);
  }
  std::vector<double> frame_times(int64_t clip, int64_t first, int64_t count) const override {
    return inner_->read_times(clip, first, count);
  }
  std::vector<double> frame_intervals(int64_t clip, int64_t first, int64_t count) const override {
    return inner_->read_intervals(clip, first, count);
  }

 private:
  template <typename Out>
  void put(const io::Array& stored, std::span<Out> out) const {
    const double none = missing_.value_or(std::numeric_limits<double>::quiet_NaN());
    with_numbers(stored, [&](auto values) {
      using T = std::remove_cvref_t<decltype(values[0])>;
      for (size_t i = 0; i < out.size(); ++i) {
        const double value = number(values[i]);
        // A number such as 1e20 stands in the file rounded to its type.
        bool missing = value == none;
        if constexpr (std::is_same_v<T, float>) missing = values[i] == static_cast<float>(none);
        out[i] = missing ? std::numeric_limits<Out>::quiet_NaN() : static_cast<Out>(value);
      }
    });
  }

  // [T,C,H,W] as frames() promises it.
  io::Array in_order(const io::Array& frames) const {
    return channels_last(info().layout) && info().channels > 1 ? with_channels_last(frames) : frames;
  }

  std::unique_ptr<Recording> inner_;
  std::optional<double> missing_;
};

}  // namespace

bool masks(const RecordingInfo& info, const RecordingOptions& o) {
  return o.missing_value.has_value() || (o.missing == Missing::mask && info.kind != "field");
}

std::unique_ptr<Recording> mask_recording(std::unique_ptr<Recording> recording, const RecordingOptions& options) {
  return std::make_unique<MaskedRecording>(std::move(recording), options);
}

}  // namespace convssm::data
