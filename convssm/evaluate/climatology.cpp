// Sums are kept for each bin, not frames: memory is that of the bins, whatever the length of the recording. Where those would
// be too much, the hours go first, then the months.
#include "convssm/evaluate/climatology.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "convssm/base/error.h"

namespace convssm::evaluate {
namespace {

constexpr double kDay = 86400, kTwoYears = 730 * kDay;
constexpr int64_t kPiece = 32, kFewest = 10, kFewestOfBin = 3, kMostBytes = int64_t{1} << 31;

struct Piece {
  uint64_t clip;
  int64_t first, frames;
};

std::vector<Piece> training_pieces(const data::Dataset& dataset, int64_t most) {
  const uint64_t clips = dataset.size(data::Split::train);
  if (clips >= data::any_count || dataset.longest(data::Split::train) >= data::any_length) {
    fail(ErrorKind::data, "its training clips are made without end");
  }
  std::vector<Piece> all;
  for (uint64_t clip = 0; clip < clips; ++clip) {
    const int64_t length = dataset.length(data::Split::train, clip);
    for (int64_t first = 0; first < length; first += kPiece) {
      all.push_back({clip, first, std::min(kPiece, length - first)});
    }
  }
  const auto found = static_cast<int64_t>(all.size()), chosen = std::min(found, std::max<int64_t>(1, most / kPiece));
  std::vector<Piece> some;
  for (int64_t i = 0; i < chosen; ++i) some.push_back(all[static_cast<size_t>(i * found / chosen)]);
  return some;
}

data::Clips read_piece(const data::Dataset& dataset, const Piece& piece) {
  data::Clips clips = dataset.part(data::Split::train, piece.clip, piece.first, piece.frames);
  if (!clips.timing.times.defined()) fail(ErrorKind::data, "nobody knows when the frames were taken");
  return clips;
}

// Seconds from the first to the last of the frames.
double covered_seconds(const data::Dataset& dataset, const std::vector<Piece>& pieces) {
  double first = INFINITY, last = -INFINITY;
  for (const Piece& piece : {pieces.front(), pieces.back()}) {
    const at::Tensor times = read_piece(dataset, piece).timing.times;
    first = std::min(first, times.min().item<double>());
    last = std::max(last, times.max().item<double>());
  }
  return last - first;
}

int64_t month_of_lengths(int64_t day, std::initializer_list<int> lengths) {
  int64_t month = 0;
  for (const int length : lengths) {
    if (day < length) break;
    day -= length;
    ++month;
  }
  return month;
}

int64_t remainder(int64_t a, int64_t b) { return (a % b + b) % b; }

class UsualFrame : public Reference {
 public:
  explicit UsualFrame(const data::Dataset& dataset) : format_(dataset.format()), climatology_(dataset) {}

  at::Tensor forecast(const Past& past, int64_t frames) const override {
    if (!past.times.defined()) fail(ErrorKind::data, "[climatology] test frames have no times, training frames have");
    const int64_t K = past.video.size(1);
    return data::frames_of_values(climatology_.at_times(past.times.slice(1, K, K + frames)), format_);
  }
  std::string about() const override { return climatology_.text(); }

 private:
  data::FrameFormat format_;
  Climatology climatology_;
};

}  // namespace

int64_t month_of(double seconds, const std::string& calendar) {
  const auto day = static_cast<int64_t>(std::floor(seconds / kDay));
  if (calendar == "360_day") return remainder(day, 360) / 30;
  if (calendar == "noleap" || calendar == "365_day") {
    return month_of_lengths(remainder(day, 365), {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30});
  }
  if (calendar == "all_leap" || calendar == "366_day") {
    return month_of_lengths(remainder(day, 366), {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30});
  }
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  return static_cast<unsigned>(date.month()) - 1;
}

Climatology::Climatology(const data::Dataset& dataset, int64_t most) {
  if (!dataset.codes().none()) fail(ErrorKind::data, "the clips hold codes, not values");
  const data::Axes* axes = dataset.axes();
  if (axes == nullptr || !(axes->step > 0 || axes->months > 0)) {
    fail(ErrorKind::data, "nobody knows when the frames were taken");
  }
  calendar_ = axes->calendar;
  const std::vector<Piece> pieces = training_pieces(dataset, most);
  int64_t frames = 0;
  for (const Piece& piece : pieces) frames += piece.frames;
  if (frames < kFewest) {
    fail(ErrorKind::data, "{} training frames are too few for a mean, it takes {}", frames, kFewest);
  }
  const data::FrameFormat format = dataset.format();
  if (axes->months == 0 && axes->step < kDay) hours_ = std::clamp<int64_t>(std::llround(kDay / axes->step), 1, 24);
  if (covered_seconds(dataset, pieces) >= kTwoYears) months_ = 12;
  if (16 * format.pixels() * hours_ * months_ > kMostBytes) hours_ = 1;
  if (16 * format.pixels() * months_ > kMostBytes) months_ = 1;

  const std::vector<int64_t> shape = {hours_ * months_, format.depth(), format.height, format.width};
  at::Tensor sums = at::zeros(shape, at::kDouble), counts = at::zeros(shape, at::kInt);
  for (const Piece& piece : pieces) {
    const data::Clips clips = read_piece(dataset, piece);
    const at::Tensor times = clips.timing.times.to(at::kDouble).contiguous();
    for (int64_t t = 0; t < piece.frames; ++t) {
      const int64_t at = bin(times.data_ptr<double>()[t]);
      const at::Tensor values = data::values_of(clips.video[0][t], format);
      if (clips.valid.defined()) {
        const at::Tensor measured = clips.valid[0][t];
        sums[at].add_(values.masked_fill(measured.logical_not(), 0));
        counts[at].add_(measured);
      } else {
        sums[at].add_(values);
        counts[at].add_(1);
      }
    }
  }
  const at::Tensor all = sums.sum(0), count = counts.sum(0);
  const at::Tensor of_channel = (all.sum({1, 2}) / count.sum({1, 2}).clamp_min(1)).view({-1, 1, 1});
  const at::Tensor of_pixel = at::where(count > 0, all / count.clamp_min(1), of_channel.expand_as(all));
  means_ = at::where(counts >= kFewestOfBin, sums / counts.clamp_min(1), of_pixel.expand_as(sums)).to(at::kFloat);

  text_ = fmt::format("mean of {} training frames", frames);
  if (hours_ > 1) text_ += fmt::format(" by hour of the day ({})", hours_);
  if (months_ > 1) text_ += fmt::format("{} month of the year (12)", hours_ > 1 ? " and" : " by");
}

int64_t Climatology::bin(double seconds) const {
  const double of_day = seconds / kDay - std::floor(seconds / kDay);
  const int64_t hour = std::min(hours_ - 1, static_cast<int64_t>(of_day * static_cast<double>(hours_) + 1e-6));
  return (months_ > 1 ? month_of(seconds, calendar_) : 0) * hours_ + hour;
}

at::Tensor Climatology::at_times(const at::Tensor& times) const {
  const at::Tensor seconds = times.cpu().to(at::kDouble).contiguous();
  std::vector<int64_t> bins;
  for (int64_t i = 0; i < seconds.numel(); ++i) bins.push_back(bin(seconds.data_ptr<double>()[i]));
  std::vector<int64_t> shape = times.sizes().vec();
  shape.insert(shape.end(), means_.sizes().begin() + 1, means_.sizes().end());
  return means_.index_select(0, at::tensor(bins, at::kLong)).to(at::kDouble).view(shape);
}

std::unique_ptr<Reference> make_climatology(const data::Dataset& dataset) {
  return std::make_unique<UsualFrame>(dataset);
}

}  // namespace convssm::evaluate
