// Sums are kept for each bin, not frames: memory is that of the bins, whatever the length of the recording. Where those would
// be too much, the hours go first, then the months.
#include "convssm/evaluate/climatology.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convssm/base/error.h"

namespace convssm::evaluate {
namespace {

constexpr double kDay = 86400;
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
  for (int64_t i = 0; i < chosen; ++i) {  // the first and the last among them
    some.push_back(all[static_cast<size_t>(i * (found - 1) / std::max<int64_t>(1, chosen - 1))]);
  }
  return some;
}

data::Clips read_piece(const data::Dataset& dataset, const Piece& piece) {
  data::Clips clips = dataset.part(data::Split::train, piece.clip, piece.first, piece.frames);
  if (!clips.timing.times.defined()) fail(ErrorKind::data, "nobody knows when the frames were taken");
  return clips;
}

// From the beginning of the first frame to the end of the last one.
bool cover_two_years(const data::Dataset& dataset, const std::vector<Piece>& pieces, const io::CfTime& time) {
  const data::Axes& axes = *dataset.axes();
  double first = INFINITY, last = -INFINITY;
  for (const Piece& piece : {pieces.front(), pieces.back()}) {
    const at::Tensor times = read_piece(dataset, piece).timing.times;
    first = std::min(first, times.min().item<double>());
    last = std::max(last, times.max().item<double>());
  }
  const double end = axes.months > 0 ? time.add_months(last, axes.months) : last + axes.step;
  return end >= time.add_months(first, 24) - 1;  // a second for rounding
}

// The times of an axis in seconds since 1970-01-01. Error(data) if frames have none.
io::CfTime time_of(const data::Dataset& dataset) {
  const data::Axes* axes = dataset.axes();
  if (axes == nullptr || !(axes->step > 0 || axes->months > 0)) {
    fail(ErrorKind::data, "nobody knows when the frames were taken");
  }
  return {"seconds since 1970-01-01", axes->calendar};
}

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

Climatology::Climatology(const data::Dataset& dataset, int64_t most) : time_(time_of(dataset)) {
  if (!dataset.codes().none()) fail(ErrorKind::data, "the clips hold codes, not values");
  const data::Axes* axes = dataset.axes();
  const std::vector<Piece> pieces = training_pieces(dataset, most);
  int64_t frames = 0;
  for (const Piece& piece : pieces) frames += piece.frames;
  if (frames < kFewest) {
    fail(ErrorKind::data, "{} training frames are too few for a mean, it takes {}", frames, kFewest);
  }
  const data::FrameFormat format = dataset.format();
  if (axes->months == 0 && axes->step < kDay) hours_ = std::clamp<int64_t>(std::llround(kDay / axes->step), 1, 24);
  if (cover_two_years(dataset, pieces, time_)) months_ = 12;
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
  const auto mean_or = [](const at::Tensor& sum, const at::Tensor& n, const at::Tensor& otherwise) {
    return at::where(n >= kFewestOfBin, sum / n.clamp_min(1), otherwise.expand_as(sum));
  };
  const auto by_hour = [&](const at::Tensor& x) {
    return x.view({months_, hours_, format.depth(), format.height, format.width});
  };
  const at::Tensor of_month = mean_or(by_hour(sums).sum(1), by_hour(counts).sum(1), of_pixel);
  means_ = mean_or(by_hour(sums), by_hour(counts), of_month.unsqueeze(1)).flatten(0, 1).to(at::kFloat);

  text_ = fmt::format("mean of {} training frames", frames);
  if (hours_ > 1) text_ += fmt::format(" by hour of the day ({})", hours_);
  if (months_ > 1) text_ += fmt::format("{} month of the year (12)", hours_ > 1 ? " and" : " by");
}

int64_t Climatology::bin(double seconds) const {
  const double of_day = seconds / kDay - std::floor(seconds / kDay);
  const int64_t hour = std::min(hours_ - 1, static_cast<int64_t>(of_day * static_cast<double>(hours_) + 1e-6));
  return (months_ > 1 ? time_.date(seconds).month - 1 : 0) * hours_ + hour;
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
