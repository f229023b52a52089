#include "convssm/base/threads.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <limits>
#include <thread>
#include <vector>

#include "convssm/base/error.h"

namespace convssm {
namespace {

// volatile: the product is made by the CPU now, not by the compiler before.
bool flushes_products() {
  volatile float tiny = std::numeric_limits<float>::min();
  volatile float half = 0.5F;
  volatile float denormal = std::numeric_limits<float>::denorm_min() * 1000;
  volatile float large = 1e30F;
  return tiny * half == 0.0F && denormal * large == 0.0F;
}

int team_size() {
  int size = 0;
#pragma omp parallel
#pragma omp single
  size = omp_get_num_threads();
  return size;
}

class ThreadsTest : public testing::Test {
 protected:
  void TearDown() override { set_threads(before_); }
  int before_ = threads();
};

TEST_F(ThreadsTest, SetThreadsIsHonoured) {
  for (const int n : {1, 2, 3, 1}) {
    set_threads(n);
    EXPECT_EQ(threads(), n);
    EXPECT_EQ(team_size(), n);
  }
}

TEST_F(ThreadsTest, SetThreadsRefusesNonsense) {
  for (const int n : {0, -1, 4 * hardware_threads() + 1}) {
    try {
      set_threads(n);
      FAIL() << n << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("got " + std::to_string(n)), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(threads(), before_);
}

TEST_F(ThreadsTest, HardwareThreadsFollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const int count = hardware_threads();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(count, 1);
  EXPECT_GE(hardware_threads(), 1);
}

#if defined(__x86_64__) || defined(__aarch64__)

// In a thread of its own, so that the other tests keep denormals.
TEST_F(ThreadsTest, EveryWorkerFlushesDenormals) {
  std::thread([] {
    EXPECT_FALSE(denormals_flushed());
    EXPECT_FALSE(flushes_products());
    set_threads(4);
    std::vector<char> flushed(4, 0), told(4, 0);
    flush_denormals_on_all_threads();
#pragma omp parallel
    {
      flushed[static_cast<size_t>(omp_get_thread_num())] = flushes_products();
      told[static_cast<size_t>(omp_get_thread_num())] = denormals_flushed();
    }
    EXPECT_EQ(flushed, std::vector<char>(4, 1));
    EXPECT_EQ(told, std::vector<char>(4, 1));
    EXPECT_TRUE(denormals_flushed());
  }).join();
  EXPECT_FALSE(denormals_flushed());
}

// Workers that were there before, which cannot have inherited it.
TEST_F(ThreadsTest, WorkersThatAlreadyRunFlushToo) {
  std::thread([] {
    set_threads(4);
    EXPECT_EQ(team_size(), 4);
    flush_denormals_on_all_threads();
    int flushing = 0;
#pragma omp parallel reduction(+ : flushing)
    flushing += flushes_products() ? 1 : 0;
    EXPECT_EQ(flushing, 4);
  }).join();
}

TEST_F(ThreadsTest, LaterThreadsInheritIt) {
  std::thread([] {
    flush_denormals_on_all_threads();
    bool inherited = false;
    std::thread([&] { inherited = flushes_products(); }).join();
    EXPECT_TRUE(inherited);
  }).join();
}

#endif

}  // namespace
}  // namespace convssm
