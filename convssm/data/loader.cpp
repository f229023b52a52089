// Workers take the numbers of batches in turn and leave the batches in a map, from which next() takes them in order: what
// they make does not depend on who makes it. At most one batch more than there are workers waits.
#include "convssm/data/loader.h"

#include "convssm/base/error.h"
#include "convssm/data/order.h"

namespace convssm::data {
namespace {

void check(const Dataset& dataset, const LoaderOptions& o) {
  if (o.batch < 1 || o.frames < 1 || o.workers < 0) {
    fail(ErrorKind::usage, "[loader] batch and frames must be positive and workers not negative, got {}, {} and {}",
         o.batch, o.frames, o.workers);
  }
  if (dataset.size(o.split) == 0) fail(ErrorKind::data, "[loader] the dataset has no {} clips", name(o.split));
  if (o.frames > dataset.longest(o.split)) {
    const std::string which = dataset.short_clips(o.split, o.frames);
    fail(ErrorKind::data, "[loader] {} frames are asked for, but the shortest {} clip has {}{}", o.frames,
         name(o.split), dataset.longest(o.split), which.empty() ? "" : ": " + which);
  }
}

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      next_made_(options.first_batch),
      next_given_(options.first_batch) {
  check(*dataset_, options_);
  if (options_.walks) {
    walk_ = std::make_unique<Walk>(*dataset_, options_.split, options_.seed, options_.batch, options_.frames);
  }
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// And which clip it is of.
Clips Loader::row_of(Batch& batch, int64_t row) const {
  uint64_t& index = batch.indices[static_cast<size_t>(row)];
  if (!walk_) return dataset_->clip(options_.split, index, options_.frames);
  const Walk::Place at = walk_->place(batch.number, row);
  index = at.clip;
  batch.begins.push_back(at.begins);
  return dataset_->part(options_.split, at.clip, at.first, options_.frames);
}

Loader::Result Loader::make(uint64_t number) const {
  Result result;
  try {
    Batch& batch = result.batch;
    batch.number = number;
    batch.indices =
        batch_indices(options_.split, options_.seed, number, options_.batch, dataset_->size(options_.split));
    for (int64_t row = 0; row < options_.batch && !stop_; ++row) {
      put_row(row_of(batch, row), row, options_.batch, batch.clips);
    }
  } catch (...) {
    result.error = std::current_exception();
  }
  return result;
}

void Loader::work() {
  const auto ahead = static_cast<uint64_t>(options_.workers) + 1;
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stop_ || next_made_ < next_given_ + ahead; });
    if (stop_) return;
    const uint64_t number = next_made_++;
    lock.unlock();
    Result result = make(number);
    lock.lock();
    results_.emplace(number, std::move(result));
    ready_.notify_all();
  }
}

Batch Loader::next() {
  Result result;
  if (options_.workers == 0) {
    result = make(next_given_);
  } else {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return results_.contains(next_given_); });
    result = results_.at(next_given_);  // stays there if it is an error, to be thrown again
  }
  if (result.error) std::rethrow_exception(result.error);
  const std::lock_guard lock(mutex_);
  results_.erase(next_given_++);
  room_.notify_all();
  return std::move(result.batch);
}

}  // namespace convssm::data
