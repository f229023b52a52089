// Speed as a ratio of two things measured in turns in one run: on a shared machine times drift, ratios hardly do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace convssm::bench {

// One line of the result. `ratio` is reference / value: how close to (or beyond) the reference the subject comes.
struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  double reference = 0;  // in the same unit
  double ratio = 0;      // median over the rounds
  double spread = 0;     // half the distance between the quartiles of the ratio
  std::string what;      // what the reference is, with the goal if there is one
};

// Runs subject and reference in turns, `rounds` times after one warm-up of each. Times are medians in milliseconds.
Row compare(const std::string& name, const std::string& what, int rounds, const std::function<void()>& subject,
            const std::function<void()>& reference);

// The parts of a copy, one per thread, as the C library does it.
void copy_bytes(void* to, const void* from, int64_t bytes);

using Report = std::function<void(const Row&)>;

// The groups of measurements by name; a group reports each row as soon as it has it.
struct Group {
  const char* name;
  const char* summary;
  void (*run)(int rounds, const Report& report);
};
const std::vector<Group>& all_groups();

void bench_scan(int rounds, const Report& report);
void bench_layer(int rounds, const Report& report);
void bench_memory(int rounds, const Report& report);
void bench_step(int rounds, const Report& report);
void bench_metrics(int rounds, const Report& report);

}  // namespace convssm::bench
