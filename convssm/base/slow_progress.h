// Progress over many things of which each is quick: nothing is shown unless all of them take more than two seconds.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "convssm/base/progress.h"

namespace convssm {

class SlowProgress {
 public:
  SlowProgress(std::string name, size_t total) : progress_(std::move(name), static_cast<int64_t>(total)) {}

  void next() {
    ++done_;
    if (std::chrono::steady_clock::now() - begin_ > std::chrono::seconds(2)) progress_.update(done_);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Progress progress_;
  int64_t done_ = 0;
};

}  // namespace convssm
