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
  double reference = 0;  // in the same unit; 0: there is none
  double ratio = 0;      // median over the rounds
  double spread = 0;     // half the distance between the quartiles of the ratio
  std::string what;      // what the reference is, with the goal if there is one
};

// Runs subject and reference in turns, `rounds` times after one warm-up of each. Times are medians in milliseconds.
Row compare(const std::string& name, const std::string& what, int rounds, const std::function<void()>& subject,
            const std::function<void()>& reference);

// A row of one number, with nothing to compare it with.
Row single(const std::string& name, double value, const std::string& unit, const std::string& what = "");

// Times of `count` units of work become units per second; the ratio stays.
Row per_second(Row row, double count, const std::string& unit);

// Of a list that is not empty, 0 <= q <= 1, between neighbours in proportion.
double quantile(std::vector<double> values, double q);

double milliseconds(const std::function<void()>& action);

// The parts of a copy, one per thread, as the C library does it. `times` may have a fraction; the threads meet once.
void copy_bytes(void* to, const void* from, int64_t bytes, double times = 1);

using Report = std::function<void(const Row&)>;

struct Settings {
  int rounds = 15;                  // how often each pair is measured
  std::vector<std::string> models;  // of the groups cost, scaling and complexity, by name; empty: all
  int64_t longest = 5000;           // frames, of the group complexity
  std::vector<std::string> files;   // of the group fields: recordings to read; empty: small ones that it writes
  std::string peer_mode = "best";   // how PyTorch runs in the group peer: eager, compiled, or the faster of both

  bool wants(const std::string& model) const;
};

// The groups of measurements by name; a group reports each row as soon as it has it.
struct Group {
  const char* name;
  const char* summary;
  void (*run)(const Settings& settings, const Report& report);
  bool by_default = true;  // the others take minutes and are run when they are named
};
const std::vector<Group>& all_groups();

void bench_scan(const Settings& settings, const Report& report);
void bench_conv(const Settings& settings, const Report& report);
void bench_layer(const Settings& settings, const Report& report);
void bench_memory(const Settings& settings, const Report& report);
void bench_metrics(const Settings& settings, const Report& report);
void bench_peer(const Settings& settings, const Report& report);
void bench_limit(const Settings& settings, const Report& report);
void bench_cost(const Settings& settings, const Report& report);
void bench_scaling(const Settings& settings, const Report& report);
void bench_complexity(const Settings& settings, const Report& report);
void bench_tokenizer(const Settings& settings, const Report& report);
void bench_codes(const Settings& settings, const Report& report);
void bench_models(const Settings& settings, const Report& report);
void bench_fields(const Settings& settings, const Report& report);
void bench_worlds(const Settings& settings, const Report& report);

}  // namespace convssm::bench
