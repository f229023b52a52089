#include "convssm/base/short_waits.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

namespace convssm {
namespace {

double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of a CPU that a thread takes while it waits for another one, which sleeps: the median of some waits.
double seconds_of_waiting() {
  std::vector<double> waits;
  for (int i = 0; i < 9; ++i) {
    std::atomic<double> seconds = 0;
#pragma omp parallel num_threads(2)
    {
      if (omp_get_thread_num() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const double before = processor_time();
#pragma omp barrier
      if (omp_get_thread_num() == 0) seconds = processor_time() - before;
    }
    waits.push_back(seconds);
  }
  std::ranges::sort(waits);
  return waits[waits.size() / 2];
}

TEST(ShortWaits, TakeNoProcessorTime) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) {
    GTEST_SKIP() << "the environment says how long threads spin";
  }
  {
    const ShortWaits waits;
    EXPECT_LT(seconds_of_waiting(), 2e-4);
  }
  {
    const ShortWaits once_more;
    EXPECT_LT(seconds_of_waiting(), 2e-4);
  }
}

TEST(CompanyWatch, IsQuickToSeeOthersAndSlowToForgetThem) {
  CompanyWatch watch;
  EXPECT_FALSE(watch.add(5));
  EXPECT_TRUE(watch.add(200));
  for (int second = 0; second < 4; ++second) EXPECT_TRUE(watch.add(3)) << second;
  EXPECT_TRUE(watch.add(100));
  for (int second = 0; second < 4; ++second) EXPECT_TRUE(watch.add(3)) << second;
  EXPECT_FALSE(watch.add(3));
  EXPECT_FALSE(watch.add(3));
}

}  // namespace
}  // namespace convssm
