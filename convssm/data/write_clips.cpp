// Writing clips. The disk and the memory are asked before the work starts: a dataset of thousands of clips takes hours.
#include "convssm/data/write_clips.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/memory.h"
#include "convssm/base/read_file.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t clips_per_folder = 1000;
constexpr const char* kRecipe = ".recipe.json";

bool is_file(const std::string& out) { return out.ends_with(".npy") || out.ends_with(".npz"); }

const char* key(const Dataset& dataset) { return !dataset.actions().none() ? "video" : "data"; }

uint64_t clip_bytes(const Dataset& dataset, const WriteOptions& o) {
  const FrameFormat format = dataset.format();
  return static_cast<uint64_t>(o.frames * format.pixels());
}

void check(const Dataset& dataset, const WriteOptions& o) {
  constexpr int64_t most = 1'000'000'000;
  if (o.clips < 1 || o.clips > static_cast<uint64_t>(most) || o.frames < 1 || o.frames > most) {
    fail(ErrorKind::usage, "[data] clips and frames must be 1 to {}, got {} and {}", most, o.clips, o.frames);
  }
  if (o.clips > dataset.size(o.split)) {
    fail(ErrorKind::usage, "[data] {} clips are asked for, the dataset has {} for {}", o.clips, dataset.size(o.split),
         name(o.split));
  }
  if (!dataset.codes().none())
    fail(ErrorKind::usage, "[data] the dataset has codes instead of a video; nothing is written");
  if (o.out.ends_with(".npy") && !dataset.actions().none()) {
    fail(ErrorKind::usage, "[data] a .npy file cannot hold the actions; write an .npz file or a folder");
  }
}

// The nearest folder above `path` that exists.
fs::path existing_folder(fs::path path) {
  path = fs::absolute(path);
  while (!fs::is_directory(path) && path.has_parent_path() && path != path.parent_path()) path = path.parent_path();
  return path;
}

// All clips; a number too large for 64 bits is too large for any disk.
uint64_t all_bytes(const Dataset& dataset, const WriteOptions& o) {
  const uint64_t each = clip_bytes(dataset, o);
  return each > UINT64_MAX / o.clips ? UINT64_MAX : each * o.clips;
}

void check_space(const WriteOptions& o, uint64_t bytes) {
  std::error_code error;
  const uint64_t left = fs::space(existing_folder(o.out), error).available;
  if (error || o.compress || bytes <= left) return;
  fail(ErrorKind::io, "[data] '{}' needs {}, but the disk has {} left; make fewer clips or use --compress", o.out,
       format_bytes(bytes), format_bytes(left));
}

// Clips that a former run wrote, so that a shorter run leaves none of them behind.
void remove_clips(const fs::path& folder) {
  std::vector<fs::path> old;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("clip-") && name.ends_with(".npz")) old.push_back(entry.path());
  }
  for (const fs::path& path : old) fs::remove(path);
}

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorKind::io, "[data] cannot create '{}': {}", folder.string(), error.message());
}

// Clips of a folder are all of one recipe.
void keep_recipe(const WriteOptions& o, const fs::path& folder) {
  const std::string path = (folder / kRecipe).string();
  if (o.resume && fs::exists(folder) && !fs::is_empty(folder)) {
    const auto found = try_read_file(path);
    if (!found || *found != o.recipe) {
      fail(ErrorKind::usage,
           "[data] '{}' holds clips made in another way ({}), now it is {}; use the same options, or "
           "--force to make them anew",
           folder.string(), found ? *found : "no .recipe.json", o.recipe);
    }
    return;
  }
  if (o.recipe.empty()) return;
  create_folder(folder);
  replace_file(path, o.recipe);
}

// Frames, actions, revisits and what else the dataset has, of one clip or of several.
std::vector<io::NamedArray> arrays_of(const Dataset& dataset, const io::Array& video, const Clips& clips, bool one) {
  std::vector<io::NamedArray> arrays{{key(dataset), video}};
  const auto add = [&](const char* name, const at::Tensor& x) {
    if (x.defined()) arrays.push_back({name, io::to_array(one ? x[0] : x)});
  };
  add("actions", clips.actions);
  add("revisit", clips.revisit);
  return arrays;
}

void write_clip(const Dataset& dataset, const WriteOptions& o, uint64_t index, const std::string& path) {
  const Clips clip = dataset.clip(o.split, index, o.frames);
  std::vector<io::NamedArray> arrays = arrays_of(dataset, to_bytes(clip.video[0]), clip, true);
  for (io::NamedArray& extra : dataset.extras(o.split, index, o.frames)) arrays.push_back(std::move(extra));
  io::write_npz(path, arrays, o.compress);
}

uint64_t write_file(const Dataset& dataset, const WriteOptions& o, const std::function<void(uint64_t)>& progress) {
  if (fs::exists(o.out) && !o.force)
    fail(ErrorKind::io, "[data] '{}' exists; choose another name or use --force", o.out);
  const uint64_t each = clip_bytes(dataset, o), all_of_them = all_bytes(dataset, o), memory = available_memory();
  if (memory > 0 && all_of_them > memory) {
    fail(ErrorKind::io, "[data] one file of {} is made in memory, which has {}; write a folder instead",
         format_bytes(all_of_them), format_bytes(memory));
  }
  const FrameFormat f = dataset.format();
  const auto count = static_cast<int64_t>(o.clips);
  io::Array all(io::DType::u8, {count, o.frames, f.height, f.width, f.depth()});
  std::vector<Clips> others;  // all but the frames
  for (uint64_t i = 0; i < o.clips; ++i) {
    Clips clip = dataset.clip(o.split, i, o.frames);
    std::ranges::copy(to_bytes(clip.video[0]).bytes(), all.bytes().subspan(i * each).begin());
    clip.video = at::Tensor();
    others.push_back(std::move(clip));
    progress(i + 1);
  }
  if (o.out.ends_with(".npy")) {
    io::write_npy(o.out, all);
  } else {
    io::write_npz(o.out, arrays_of(dataset, all, stack_rows(others), false), o.compress);
  }
  return o.clips;
}

}  // namespace

uint64_t write_clips(const Dataset& dataset, const WriteOptions& options,
                     const std::function<void(uint64_t)>& progress) {
  check(dataset, options);
  check_space(options, all_bytes(dataset, options));
  if (is_file(options.out)) return write_file(dataset, options, progress);
  return write_clip_files(
      options, [&](uint64_t index, const std::string& path) { write_clip(dataset, options, index, path); }, progress);
}

uint64_t write_clip_files(const WriteOptions& o, const std::function<void(uint64_t, const std::string&)>& write,
                          const std::function<void(uint64_t)>& progress) {
  const fs::path folder = fs::path(o.out) / name(o.split);
  if (fs::exists(folder) && !fs::is_empty(folder) && !o.resume) {
    if (!o.force)
      fail(ErrorKind::io, "[data] '{}' is not empty; choose another folder or use --force, or --resume to go on",
           folder.string());
    remove_clips(folder);
  }
  keep_recipe(o, folder);
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  uint64_t done = 0;
  std::exception_ptr failed;
  const auto work = [&] {
    try {
      for (uint64_t i = next++; i < o.clips; i = next++) {
        if (o.stop && o.stop()) return;
        const fs::path path = fs::path(o.out) / clip_name(o.split, i);
        if (!o.resume || !fs::exists(path)) {
          create_folder(path.parent_path());
          write(i, path.string());
        }
        const std::lock_guard lock(mutex);
        progress(++done);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
      next = o.clips;
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < o.workers; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (failed) std::rethrow_exception(failed);
  return done;
}

std::optional<nlohmann::json> made_from(const std::string& folder) {
  for (const fs::path& place : {fs::path(folder), fs::path(folder) / "train"}) {
    const auto recipe = try_read_json((place / kRecipe).string());
    if (!recipe || !recipe->is_object()) continue;
    nlohmann::json section = recipe->value("data", nlohmann::json());
    if (!section.is_object() || !section.contains("name")) continue;
    if (recipe->contains("seed")) section["seed"] = (*recipe)["seed"];
    return section;
  }
  return std::nullopt;
}

std::string clip_name(Split split, uint64_t index) {
  return fmt::format("{}/{:02}/clip-{:06}.npz", name(split), index / clips_per_folder, index);
}

io::Array to_bytes(const at::Tensor& video) {
  const auto x = video.contiguous();
  const int64_t T = x.size(0), C = x.size(1), pixels = x.size(2) * x.size(3);
  io::Array array(io::DType::u8, {T, x.size(2), x.size(3), C});
  const float* from = x.data_ptr<float>();
  const auto out = array.values<uint8_t>();
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t c = 0; c < C; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        const double value = std::clamp(127.5 * (static_cast<double>(*from++) + 1), 0.0, 255.0);
        out[static_cast<size_t>((t * pixels + p) * C + c)] = static_cast<uint8_t>(std::lround(value));
      }
    }
  }
  return array;
}

}  // namespace convssm::data
