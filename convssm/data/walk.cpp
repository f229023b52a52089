// The order of a pass is made when it is asked for and kept until another one is.
#include "convssm/data/walk.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/random.h"
#include "convssm/data/order.h"

namespace convssm::data {
namespace {

constexpr uint64_t kMostClips = uint64_t{1} << 24;

}  // namespace

Walk::Walk(const Dataset& dataset, Split split, uint64_t seed, int64_t batch, int64_t frames)
    : seed_(seed), fresh_(frames - 1) {
  if (batch < 1 || frames < 2) {
    fail(ErrorKind::usage, "[train] carry_state needs a batch, and frames of at least 2, got {} and {}", batch, frames);
  }
  const uint64_t size = dataset.size(split);
  if (size == 0) fail(ErrorKind::data, "[train] the dataset has no {} clips", name(split));
  if (size > kMostClips || dataset.longest(split) == any_length) {
    fail(ErrorKind::usage,
         "[train] carry_state walks along recordings to their end, this dataset makes clips {}; it is for recordings "
         "of your "
         "own (data.name=folder)",
         size > kMostClips ? "without end" : "of any length");
  }
  for (uint64_t i = 0; i < size; ++i) {
    lengths_.push_back(dataset.length(split, i));
    windows_ += static_cast<uint64_t>(std::max<int64_t>(lengths_.back() - 1, 0) / fresh_);
  }
  if (windows_ == 0) fail(ErrorKind::data, "[train] no {} clip has {} frames", name(split), frames);
  const auto rows = static_cast<uint64_t>(batch);
  steps_ = (windows_ + rows - 1) / rows;
}

std::shared_ptr<const Walk::Pass> Walk::pass(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  if (newest_ && newest_->number == number) return newest_;
  auto pass = std::make_shared<Pass>();
  pass->number = number;
  const uint64_t key = Stream(seed_, "walk: pass", number).next();
  uint64_t windows = 0;
  for (uint64_t i = 0; i < lengths_.size(); ++i) {
    pass->clips.push_back(permute(i, lengths_.size(), key));
    pass->before.push_back(windows);
    windows += static_cast<uint64_t>(std::max<int64_t>(lengths_[pass->clips.back()] - 1, 0) / fresh_);
  }
  newest_ = pass;
  return pass;
}

Walk::Place Walk::place(uint64_t step, int64_t row) const {
  const uint64_t number = step / steps_;
  // The last stretch may be shorter than the others: it goes on with the first windows, seen twice in this pass.
  const uint64_t window = (static_cast<uint64_t>(row) * steps_ + step % steps_) % windows_;
  const auto pass = this->pass(number);
  const auto after = std::ranges::upper_bound(pass->before, window);
  const auto index = static_cast<size_t>(after - pass->before.begin() - 1);
  const uint64_t clip = pass->clips[index], inside = window - pass->before[index];
  const auto spare = static_cast<uint64_t>((lengths_[clip] - 1) % fresh_);
  const uint64_t left = Stream(seed_, "walk: first frame", number).split("clip", clip).below(spare + 1);
  return {clip, static_cast<int64_t>(left) + static_cast<int64_t>(inside) * fresh_, inside == 0 || step % steps_ == 0};
}

}  // namespace convssm::data
