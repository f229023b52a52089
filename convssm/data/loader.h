// Batches of clips, made ahead of time by threads of their own. What a batch holds and in which order batches come does
// not depend on how many threads there are.
//   Loader loader(dataset, {.split = Split::train, .batch = 8, .frames = 300, .seed = 1, .workers = 2});
//   for (...) { Batch batch = loader.next(); ... }
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "convssm/data/dataset.h"
#include "convssm/data/walk.h"

namespace convssm::data {

struct LoaderOptions {
  Split split = Split::train;
  int64_t batch = 8;
  int64_t frames = 0;        // of each clip
  uint64_t seed = 0;         // of the order
  int workers = 2;           // threads; 0: batches are made when they are asked for
  uint64_t first_batch = 0;  // where to go on: the number of batches already used
  bool walks = false;        // each row goes on where it was in the batch before (data/walk.h)
};

struct Batch {
  Clips clips;
  std::vector<uint64_t> indices;  // as Dataset::clip takes them
  uint64_t number = 0;
  std::vector<bool> begins = {};  // of a walk: rows that have nothing before them
};

class Loader {
 public:
  // Error(data) at once if the split has no clips, or shorter ones than asked for.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  ~Loader();  // waits for the clips that are being made, not for the batches
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch. What goes wrong while it is made is thrown here, in order.
  Batch next();

 private:
  struct Result {
    Batch batch;
    std::exception_ptr error;
  };

  Result make(uint64_t number) const;
  Clips row_of(Batch& batch, int64_t row) const;
  void work();

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::unique_ptr<const Walk> walk_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  uint64_t next_made_, next_given_;
  std::map<uint64_t, Result> results_;
  std::vector<std::thread> workers_;
};

}  // namespace convssm::data
