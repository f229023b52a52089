// How long OpenMP's threads spin where they wait for each other. By default for milliseconds, which is right on an idle machine. Beside
// other programs the one that is waited for often has no CPU, because the other one spins on it: 12 steps of a
// small training on two CPUs that two other programs use took 61 and 94 seconds, with 1,000 rounds of spinning 11. So a watcher looks whether the process is often put off its CPUs, and for as
// long as it is, threads sleep soon.
#pragma once

#include <cstdint>
#include <memory>

namespace convssm {

// As long as one is there, threads that wait spin for microseconds.
class ShortWaits {
 public:
  ShortWaits();
  ~ShortWaits();
  ShortWaits(const ShortWaits&) = delete;
  ShortWaits& operator=(const ShortWaits&) = delete;

 private:
  class Parked;
  std::unique_ptr<Parked> parked_;
};

// Whether waits should be short, from how often the process was put off a CPU within each second.
class CompanyWatch {
 public:
  bool add(int64_t times);

 private:
  bool short_ = false;
  int calm_ = 0;  // seconds in a row
};

// Starts the watcher, once for the process. Nothing where parallel regions have one thread, or where OMP_WAIT_POLICY or
// GOMP_SPINCOUNT say how long to spin.
void watch_for_company();

}  // namespace convssm
