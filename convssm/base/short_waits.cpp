// GCC's OpenMP spins 300,000 rounds, but 100 if it has more threads than there are CPUs, whichever of them wait. It reads its settings
// when the program is loaded, so that what can still be changed is the number of its threads: a few more, which sleep.
#include "convssm/base/short_waits.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "convssm/base/threads.h"

namespace convssm {
namespace {

constexpr int64_t kOften =
    60;  // a CPU that is shared is taken away every few milliseconds, an idle one some times a second
constexpr int kCalmSeconds = 5;

// It takes no signals: those are for the thread that looks for a request to stop.
std::thread quiet_thread(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with the mask of the one that starts it
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

int64_t times_put_off() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

[[noreturn]] void watch() {
  CompanyWatch company;
  std::optional<ShortWaits> waits;
  for (int64_t before = times_put_off();;) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const int64_t now = times_put_off();
    const bool wanted = company.add(now - before);
    before = now;
    if (wanted && !waits) waits.emplace();
    if (!wanted) waits.reset();
  }
}

}  // namespace

// The thread that has begun a parallel region keeps the region's threads until it ends.
class ShortWaits::Parked {
 public:
  explicit Parked(int threads)
      : thread_(quiet_thread([this, threads] {
          std::atomic<int> begun = 0;  // a region that does nothing would be left out
#pragma omp parallel num_threads(threads)
          ++begun;
          parked_.set_value();
          end_.get_future().wait();
        })) {
    parked_.get_future().wait();
  }
  ~Parked() {
    end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> parked_, end_;
  std::thread thread_;
};

ShortWaits::ShortWaits() : parked_(std::make_unique<Parked>(std::max(2, affinity_cpus() + 2 - threads()))) {}

ShortWaits::~ShortWaits() = default;

bool CompanyWatch::add(int64_t times) {
  calm_ = times >= kOften ? 0 : calm_ + 1;
  short_ = times >= kOften || (short_ && calm_ < kCalmSeconds);
  return short_;
}

void watch_for_company() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (threads() == 1 || std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
    quiet_thread(watch).detach();
  });
}

}  // namespace convssm
