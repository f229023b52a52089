// Work for one thread, handed over by others, who may wait for the result: the model belongs to one thread, connections to many.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>

#include "convssm/base/error.h"

namespace convssm::serve {

class Tasks {
 public:
  // Runs `work` on the thread of run_one(), in the order of asking; false if close() came first.
  bool post(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      waiting_.push_back(std::move(work));
    }
    came_.notify_one();
    return true;
  }

  // What `work` returns or throws there. Error(io) if close() came first.
  template <typename Work>
  auto ask(Work work) {
    using Result = decltype(work());
    auto task = std::make_shared<std::packaged_task<Result()>>(std::move(work));
    std::future<Result> result = task->get_future();
    if (!post([task = std::move(task)] { (*task)(); })) fail_closed();
    try {
      return result.get();
    } catch (const std::future_error&) {  // close() dropped the task
      fail_closed();
    }
  }

  // Runs the first task, or waits so long for one.
  void run_one(std::chrono::milliseconds wait) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      if (!came_.wait_for(lock, wait, [this] { return !waiting_.empty(); })) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }

  // Whoever waits or comes later is refused.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting_.clear();
  }

 private:
  [[noreturn]] static void fail_closed() { fail(ErrorKind::io, "the server is stopping"); }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> waiting_;
  bool closed_ = false;
};

}  // namespace convssm::serve
