// LPIPS, SSIM and I3D against the same work in PyTorch on this machine, where python3-torch is installed. The weights
// are made up: speed does not depend on them.
#include <ATen/ATen.h>
#include <unistd.h>

#include <filesystem>

#include "bench/harness.h"
#include "bench/peer_metrics.h"
#include "bench/python_peer.h"
#include "convssm/base/threads.h"
#include "convssm/io/tensor.h"
#include "convssm/metrics/i3d.h"
#include "convssm/metrics/i3d_layout.h"
#include "convssm/metrics/lpips.h"
#include "convssm/metrics/ssim.h"

namespace convssm::bench {
namespace {

using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// Weights of these shapes in a file that lives as long as the object.
class MadeUpWeights {
 public:
  MadeUpWeights(const std::string& name, const Shapes& shapes)
      : path_(std::filesystem::temp_directory_path() / fmt::format("convssm-bench-{}-{}", ::getpid(), name)) {
    io::NamedTensors tensors;
    for (const auto& [tensor, shape] : shapes) tensors.emplace_back(tensor, at::rand(shape).mul_(0.1));
    io::save_tensors(path_, tensors);
  }
  ~MadeUpWeights() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  MadeUpWeights(const MadeUpWeights&) = delete;
  MadeUpWeights& operator=(const MadeUpWeights&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Work {
  const char* row;
  const char* peer;
  const char* goal;
  double count;
  const char* unit;
};

void measure(const Work& work, PythonPeer* peer, int rounds, const Report& report, const std::function<void()>& ours) {
  if (peer == nullptr) {
    Row row = compare(work.row, "", rounds, ours, [] {});
    row.reference = row.ratio = row.spread = 0;
    row.what = "python3-torch is not installed";
    return report(per_second(row, work.count, work.unit));
  }
  const std::string what = fmt::format("{}, its faster memory format; goal {}", peer->version(), work.goal);
  report(per_second(compare(work.row, what, rounds, ours, [&] { peer->run(work.peer); }), work.count, work.unit));
}

}  // namespace

void bench_metrics(const Settings& settings, const Report& report) {
  const int rounds = settings.rounds;
  at::NoGradGuard no_grad;
  at::manual_seed(1);
  const auto peer = PythonPeer::start(kPeerMetrics, {kPeerLpips, kPeerI3d, std::to_string(threads())});
  const auto backbone = metrics::LpipsBackbone::squeeze;
  const MadeUpWeights features("lpips", metrics::lpips_network_tensors(backbone));
  const MadeUpWeights heads("heads", metrics::lpips_head_tensors(backbone));
  const metrics::Lpips lpips(backbone, features.path(), heads.path());
  const at::Tensor a = at::rand({64, 3, 64, 64}), b = at::rand({64, 3, 64, 64});
  measure({"metrics.lpips_squeeze.64x64", "lpips", "1", 64, "images/s"}, peer.get(), rounds, report,
          [&] { lpips(a, b); });

  const at::Tensor x = at::rand({256, 1, 64, 64}), y = at::rand({256, 1, 64, 64});
  measure({"metrics.ssim_gauss11.64x64", "ssim", "1", 256, "images/s"}, peer.get(), rounds, report,
          [&] { metrics::ssim_gauss11(x, y); });

  const MadeUpWeights weights("i3d", metrics::i3d_tensors());
  const metrics::I3d i3d(weights.path());
  const at::Tensor clip = at::rand({16, 3, 64, 64});
  measure({"metrics.i3d.16x224x224", "i3d", "1.5", 1, "clips/s"}, peer.get(), rounds, report,
          [&] { i3d.logits(clip); });
}

}  // namespace convssm::bench
