// ConvS5 against the same model in PyTorch on this machine (tools/peer_pytorch.py), where python3-torch is installed:
// training steps and generated frames, in turns. Both have the same parameters, and what they compute is compared first.
#include <ATen/ATen.h>
#include <unistd.h>

#include <filesystem>

#include "bench/generator.h"
#include "bench/harness.h"
#include "bench/peer_pytorch.h"
#include "bench/python_peer.h"
#include "bench/training_step.h"
#include "convssm/base/log.h"
#include "convssm/base/threads.h"
#include "convssm/io/tensor.h"
#include "convssm/models/forecaster.h"
#include "convssm/run/model_file.h"
#include "convssm/train/gradients.h"

namespace convssm::bench {
namespace {

struct Case {
  const char* size;
  int64_t clip;          // frames of the training step
  int64_t frames;        // generated in a round
  int train_rounds_per;  // rounds / this
};

// What the peer needs: the model, a clip and what convssm makes of it, in a file that lives as long as the object.
class PeerFile {
 public:
  PeerFile(const BenchModel& subject, const at::Tensor& video)
      : path_(std::filesystem::temp_directory_path() / fmt::format("convssm-bench-{}.safetensors", ::getpid())) {
    models::Model& model = *subject.model;
    model.zero_grad();
    const double loss = train::add_gradients(model, {video}, {}, 0).loss;
    const double norm = train::Optimizer(model.players().at(0), {}).gradient_norm();
    model.zero_grad();
    at::NoGradGuard no_grad;
    models::Forecaster& forecaster = models::forecaster_of(model);
    const at::Tensor frame = forecaster.next(forecaster.start({video.slice(0, 0, 1)}, {}), {}).frame;
    std::vector<io::LazyArray> arrays = run::model_arrays(model);
    arrays.push_back(io::lazy_array("bench.video", video));
    arrays.push_back(io::lazy_array("bench.frame", frame));
    arrays.push_back(io::lazy_array("bench.loss", at::full({1}, loss)));
    arrays.push_back(io::lazy_array("bench.gradient_norm", at::full({1}, norm)));
    io::stream_safetensors(path_, arrays, run::recipe_metadata({subject.config.model, subject.format, {}}));
  }
  ~PeerFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  PeerFile(const PeerFile&) = delete;
  PeerFile& operator=(const PeerFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string missing() { return "python3-torch is not installed"; }

// Without a peer the row has our side alone.
Row against(PythonPeer* peer, const std::string& name, const char* goal, int rounds, const std::function<void()>& ours,
            const std::function<void()>& theirs) {
  if (peer != nullptr) return compare(name, fmt::format("{}; goal {}", peer->version(), goal), rounds, ours, theirs);
  Row row = compare(name, missing(), rounds, ours, [] {});
  row.reference = row.ratio = row.spread = 0;
  return row;
}

Row latency(const std::string& name, double q, const std::vector<double>& ours, const std::vector<double>& theirs) {
  Row row = single(name, quantile(ours, q), "ms", theirs.empty() ? missing() : "PyTorch; of single frames");
  if (theirs.empty()) return row;
  row.reference = quantile(theirs, q);
  row.ratio = row.reference / row.value;
  return row;
}

void bench_generation(const std::string& name, const char* goal, const Generator& next, int64_t frames,
                      PythonPeer* peer, int rounds, const Report& report) {
  std::vector<double> ours, theirs;
  const auto generate = [&] {
    for (int64_t i = 0; i < frames; ++i) ours.push_back(milliseconds(next));
  };
  const auto generate_theirs = [&] {
    for (const double seconds : peer->run("generate")) theirs.push_back(1000 * seconds);
  };
  const Row row = against(peer, name, goal, rounds, generate, generate_theirs);
  report(per_second(row, static_cast<double>(frames), "frames/s"));
  ours.erase(ours.begin(), ours.begin() + frames);  // those that warmed up
  if (!theirs.empty()) theirs.erase(theirs.begin(), theirs.begin() + frames);
  report(latency(name + ".p50", 0.5, ours, theirs));
  report(latency(name + ".p99", 0.99, ours, theirs));
}

void report_differences(PythonPeer& peer, const std::string& size, const Report& report) {
  const std::vector<double> found = peer.run("check");
  const char* names[] = {"frame", "loss", "gradients"};
  const char* units[] = {"of [-1,1]", "relative", "relative"};
  for (size_t i = 0; i < 3; ++i) {
    report(single(fmt::format("difference.convs5.{}.{}", size, names[i]), found.at(i), units[i],
                  "largest difference between convssm and the PyTorch port"));
  }
}

void bench_size(const Case& c, const Settings& settings, const Report& report) {
  const int rounds = settings.rounds;
  const BenchModel subject = make_bench_model(c.size, "convs5");
  const at::Tensor video = subject.clip(c.clip);
  log_info("peer: ConvS5 of the size '{}'; PyTorch tries what is fastest first", c.size);
  const PeerFile file(subject, video);
  const auto peer = PythonPeer::start(
      kPeerPytorch, {file.path(), std::to_string(threads()), std::to_string(c.frames), settings.peer_mode});
  if (peer) report_differences(*peer, c.size, report);

  const models::State state = state_after(subject, c.clip);
  bench_generation(fmt::format("generate.convs5.{}", c.size), "5", make_generator(subject, state), c.frames, peer.get(),
                   rounds, report);
  bench_generation(fmt::format("generate.convs5.{}.int8", c.size), "8", make_generator(subject, state, Precision::int8),
                   c.frames, peer.get(), rounds, report);
  TrainingStep step(subject, video);
  const Row row = against(
      peer.get(), fmt::format("train.convs5.{}", c.size), "2.5", std::max(3, rounds / c.train_rounds_per),
      [&] { step.run(); }, [&] { peer->run("train"); });
  report(per_second(row, static_cast<double>(c.clip - 1), "frames/s"));
}

}  // namespace

void bench_peer(const Settings& settings, const Report& report) {
  bench_size({"mini", 51, 50, 1}, settings, report);
  bench_size({"paper", 9, 10, 3}, settings, report);
}

}  // namespace convssm::bench
