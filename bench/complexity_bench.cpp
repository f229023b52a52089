// The paper's complexity table (section 3.5) over the number of frames L, in lengths that double: a training step of a
// clip of L frames, of the small models (configs/mini), and one frame generated after L, of these and of the paper's
// size. No clip is cut into chunks. The three models take turns at each length. Rows are
// complexity.<quantity>.<size>.<model>.<frames>; their reference is ConvS5.
#include <ATen/ATen.h>

#include "bench/generator.h"
#include "bench/harness.h"
#include "bench/training_step.h"
#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/ops/allocator.h"
#include "convssm/ops/memory_meter.h"

namespace convssm::bench {
namespace {

constexpr const char* kModels[] = {"convs5", "convlstm", "transformer"};  // ratios are to the first
constexpr int64_t kShortest = 25;
constexpr int kFewestRounds = 5;
constexpr double kEnoughSteps = 20'000, kEnoughFrames = 5'000;  // milliseconds for the rounds of a length

std::vector<int64_t> lengths(int64_t longest) {
  std::vector<int64_t> found{longest};
  while (found.front() / 2 >= kShortest) found.insert(found.begin(), found.front() / 2);
  return found;
}

struct Contender {
  BenchModel subject;
  std::shared_ptr<generate::Predictor> predictor;
};

std::vector<Contender> make_contenders(const std::string& size, const Settings& settings) {
  std::vector<Contender> made;
  for (const char* name : kModels) {
    if (!settings.wants(name)) continue;
    BenchModel subject = make_bench_model(size, name);
    made.push_back({subject, make_predictor(subject)});
  }
  return made;
}

// What a model does when it is its turn.
struct Turn {
  std::string model;
  std::function<double()> run;  // milliseconds of what is measured
  std::vector<double> times = {};
};

// `rounds` of them, or as many as are begun in `enough` milliseconds.
void take_turns(std::vector<Turn>& turns, int rounds, double enough) {
  double spent = 0;
  for (int round = 0; round < rounds && (round < kFewestRounds || spent < enough); ++round) {
    spent += milliseconds([&] {
      for (Turn& turn : turns) turn.times.push_back(turn.run());
    });
  }
}

std::string row_name(const std::string& quantity, const std::string& model, int64_t length) {
  return fmt::format("complexity.{}.{}.{}", quantity, model, length);
}

void report_turns(const std::string& quantity, int64_t length, const std::vector<Turn>& turns, const Report& report) {
  const Turn& reference = turns.front();
  for (const Turn& turn : turns) {
    Row row = single(row_name(quantity, turn.model, length), quantile(turn.times, 0.5), "ms",
                     fmt::format("quartiles {:.4g} to {:.4g} ms of {}", quantile(turn.times, 0.25),
                                 quantile(turn.times, 0.75), turn.times.size()));
    if (reference.model == kModels[0] && turn.model != reference.model) {
      std::vector<double> ratios;
      for (size_t i = 0; i < turn.times.size(); ++i) ratios.push_back(reference.times[i] / turn.times[i]);
      row.reference = quantile(reference.times, 0.5);
      row.ratio = quantile(ratios, 0.5);
      row.spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2;
      row.what = fmt::format("{}; {}", display_name(reference.model), row.what);
    }
    report(row);
  }
}

// The first step of each model is measured for its memory.
void steps_in_turns(const std::vector<Contender>& contenders, int64_t length, int rounds, const Report& report) {
  ops::release_cached_memory();  // blocks of the length before, of sizes that do not come again
  std::vector<Turn> turns;
  for (const Contender& one : contenders) {
    const auto step = std::make_shared<TrainingStep>(one.subject, one.subject.clip(length + 1));
    one.subject.model->zero_grad();
    const ops::MemoryMeter meter;
    step->run();
    report(single(row_name("memory.mini", one.subject.name, length), 1e-6 * static_cast<double>(meter.peak()), "MB",
                  "tensors at the peak of a step, without parameters"));
    turns.push_back({one.subject.name, [step] { return milliseconds([&] { step->run(); }); }});
  }
  take_turns(turns, rounds, kEnoughSteps);
  report_turns("train.mini", length, turns, report);
}

// A turn begins with a frame that is not measured, so that what the others left in the processor's caches does not count.
void frames_in_turns(const std::string& size, const std::vector<Contender>& contenders, int64_t length, int rounds,
                     const Report& report) {
  std::vector<Turn> turns;
  for (const Contender& one : contenders) {
    report(single(row_name("flops." + size, one.subject.name, length), 1e-9 * flops_after(one.subject, length),
                  "GFLOPs", "forward, one frame"));
    turns.push_back({one.subject.name, [predictor = one.predictor, before = state_after(one.subject, length - 1)] {
                       predictor->start(before);
                       predictor->next();
                       return milliseconds([&] { predictor->next(); });
                     }});
    turns.back().run();  // memory for caches of this size
  }
  take_turns(turns, rounds, kEnoughFrames);
  report_turns("generate." + size, length, turns, report);
}

}  // namespace

void bench_complexity(const Settings& settings, const Report& report) {
  if (settings.longest < kShortest) {
    fail(ErrorKind::usage, "[bench] --longest must be at least {}, got {}", kShortest, settings.longest);
  }
  for (const std::string size : {"mini", "paper"}) {
    const std::vector<Contender> contenders = make_contenders(size, settings);
    if (contenders.empty()) return;
    for (const int64_t length : lengths(settings.longest)) {
      log_info("complexity: size {}, {} frames", size, length);
      if (size == "mini") steps_in_turns(contenders, length, settings.rounds, report);
      frames_in_turns(size, contenders, length, settings.rounds, report);
    }
  }
}

}  // namespace convssm::bench
