// Windows of recordings of fields, as training reads them, against the same windows by xarray and, of HDF5 files, by h5py, which neither
// scales values nor knows which are missing. Files are open and their pages in memory; what both read is compared first.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/harness.h"
#include "bench/peer_fields.h"
#include "bench/python_peer.h"
#include "convssm/base/error.h"
#include "convssm/base/random.h"
#include "convssm/data/field_writer.h"
#include "convssm/data/recording.h"

namespace convssm::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWindows = 8;

// Recordings in a folder that lives as long as the object: waves with some noise, as fields of measurements have.
class MadeUpFields {
 public:
  MadeUpFields() : folder_(fs::temp_directory_path() / fmt::format("convssm-bench-{}-fields", ::getpid())) {
    fs::create_directories(folder_);
    for (const char* name : {"waves.nc", "waves.zarr"}) {
      paths_.push_back(folder_ / name);
      write(paths_.back());
    }
  }
  ~MadeUpFields() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  MadeUpFields(const MadeUpFields&) = delete;
  MadeUpFields& operator=(const MadeUpFields&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  static void write(const std::string& path) {
    constexpr int64_t T = 480, N = 128;
    data::FrameFormat format(1, N, N);
    format.channels = {{"wave", -2, 2, "m"}};
    data::FieldWriter out(path, format, {}, T);
    const at::Tensor x = at::arange(N, at::kFloat) / 12;
    for (int64_t t = 0; t < T; ++t) {
      const at::Tensor wave = (x + 0.1 * static_cast<double>(t)).sin().unsqueeze(1) * x.cos().unsqueeze(0);
      out.write((wave + 0.01 * at::randn({N, N})).unsqueeze(0));
    }
    out.close();
  }

  fs::path folder_;
  std::vector<std::string> paths_;
};

struct Windows {
  std::vector<int64_t> firsts;
  int64_t count;
};

Windows windows_of(int64_t frames) {
  Windows windows{{}, std::min<int64_t>(24, frames)};
  Stream stream(1, "windows");
  for (int64_t i = 0; i < kWindows; ++i) {
    windows.firsts.push_back(static_cast<int64_t>(stream.below(static_cast<uint64_t>(frames - windows.count + 1))));
  }
  return windows;
}

double sum_of(data::Recording& recording, const Windows& windows) {
  double sum = 0;
  for (const int64_t first : windows.firsts) {
    const io::Array window = recording.read(0, first, windows.count);
    for (const float x : window.values<float>()) {
      if (!std::isnan(x)) sum += x;
    }
  }
  return sum;
}

void check_equal(const std::string& path, double ours, double theirs) {
  if (std::abs(ours - theirs) <= 1e-5 * std::abs(theirs)) return;
  fail(ErrorKind::data, "[bench] {}: the sum of the windows is {}, of xarray {}", path, ours, theirs);
}

void bench_recording(const std::string& path, PythonPeer* peer, int rounds, const Report& report) {
  const auto recording = data::open_recording(path);
  const data::RecordingInfo& info = recording->info();
  if (info.channels != 1 || info.clips != 1 || info.named_channels.empty()) {
    fail(ErrorKind::usage,
         "[bench] --files takes recordings of one variable without gaps, {} has {} clips of {} channels", path,
         info.clips, info.channels);
  }
  const Windows windows = windows_of(info.frames);
  const double bytes =
      4e-6 * static_cast<double>(info.frame_elements()) * static_cast<double>(windows.count * kWindows);
  const std::string name = "fields." + fs::path(path).filename().string();
  const auto ours = [&] {
    for (const int64_t first : windows.firsts) recording->read(0, first, windows.count);
  };
  if (peer == nullptr) {
    Row row = compare(name, "", rounds, ours, [] {});
    row.reference = row.ratio = row.spread = 0;
    row.what = "no Python with xarray and h5py";
    return report(per_second(row, bytes, "MB/s"));
  }
  for (const std::string package : {"xarray", "h5py"}) {
    const nlohmann::json open = {{"open", path}, {"variable", info.named_channels[0].name}, {"with", package}};
    const std::vector<double> opened = peer->run(open.dump());
    if (package == "h5py" && opened.at(0) == 0) continue;
    const auto task = [&](const char* what) {
      return nlohmann::json{{what, windows.firsts}, {"count", windows.count}}.dump();
    };
    if (package == "xarray") check_equal(path, sum_of(*recording, windows), peer->run(task("sum")).at(0));
    const std::string what = package == "xarray" ? peer->version() : "h5py, the numbers as they are stored";
    report(
        per_second(compare(name + "." + package, what, rounds, ours, [&] { peer->run(task("read")); }), bytes, "MB/s"));
  }
}

}  // namespace

void bench_fields(const Settings& settings, const Report& report) {
  at::manual_seed(1);
  const auto peer = PythonPeer::start(kPeerFields, {}, "xarray, h5py");
  if (!settings.files.empty()) {
    for (const std::string& path : settings.files) bench_recording(path, peer.get(), settings.rounds, report);
    return;
  }
  const MadeUpFields made;
  for (const std::string& path : made.paths()) bench_recording(path, peer.get(), settings.rounds, report);
}

}  // namespace convssm::bench
