// Names tell which files may be companions, their contents whether they are: a folder of clips in arrays often holds
// animations of the same names, to look at.
#include "convssm/data/companion.h"

#include <algorithm>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/data/array_choice.h"
#include "convssm/io/array_file.h"

namespace convssm::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* endings[] = {".npz", ".npy", ".csv"};

std::string stem_of(const std::string& path) { return fs::path(path).replace_extension().generic_string(); }

std::vector<std::string> candidates(const std::string& recording) {
  std::vector<std::string> all;
  const bool folder = fs::is_directory(recording);
  const std::string plain = fs::path(recording).lexically_normal().generic_string();
  const std::string beside = folder && plain.ends_with('/') ? plain.substr(0, plain.size() - 1) : plain;
  for (const char* ending : endings) {
    if (folder) all.push_back((fs::path(recording) / "actions").string() + ending);
  }
  for (const char* ending : endings) all.push_back((folder ? beside : stem_of(recording)) + ending);
  return all;
}

// Arrays of files beside a recording that could be its actions, under another key than the one that is looked for.
std::vector<std::string> other_keys(const RecordingInfo& info) {
  std::vector<std::string> found;
  for (const std::string& path : candidates(info.path)) {
    if (path == info.path || file_ending(path) != ".npz" || !fs::is_regular_file(path)) continue;
    const ArrayChoice choice(path, io::array_names(path));
    for (std::string& name : choice.like_actions("", std::vector{info.frames}, info.reading.action_reading)) {
      found.push_back(std::move(name));
    }
  }
  return found;
}

bool holds_clips(const std::string& path) {
  if (file_ending(path) == ".csv") return false;
  return std::ranges::any_of(io::array_names(path), [&](const std::string& name) {
    return io::ArrayFile(path, name).info().shape.size() >= 3;
  });
}

}  // namespace

std::optional<Companion> find_companion(const std::string& recording, const RecordingOptions& o) {
  const std::string key = actions_key(o);
  for (const std::string& path : candidates(recording)) {
    if (path == recording || !fs::is_regular_file(path)) continue;  // an animation may be called clip.npy
    if (file_ending(path) == ".csv") {
      const io::Array table = read_action_table(path, key);
      return Companion(ActionPlace{path, key, 0}, {table.dtype(), table.shape()});
    }
    const ArrayChoice choice(path, io::array_names(path));
    const bool bare = choice.contains("");
    if (!bare && !choice.contains(key)) continue;
    const io::ArrayInfo array = choice.info(bare ? "" : key);
    if (bare && array.shape.size() > 2) continue;  // a clip
    return Companion(ActionPlace{path, bare ? std::string() : key, 0}, array);
  }
  return std::nullopt;
}

void add_companion(RecordingInfo& info) {
  const RecordingOptions& o = info.reading;
  if (!o.actions) return;
  const auto companion = find_companion(info.path, o);
  if (companion) return describe_actions(info, companion->place, companion->array, std::vector{info.frames});
  info.like_actions = other_keys(info);
  if (o.actions_required) {
    const std::string stem = fs::is_directory(info.path) ? "actions" : fs::path(info.path).stem().string();
    fail(ErrorKind::data,
         "[folder] '{0}' has no actions: expected '{1}.npz' with an array '{2}', '{1}.npy' or '{1}.csv' {3} it{4}",
         info.path, stem, actions_key(o), fs::is_directory(info.path) ? "in" : "beside",
         info.like_actions.empty() ? "" : fmt::format("; is it data.actions_key={}?", info.like_actions[0]));
  }
}

std::set<std::string> companions_of(const std::string& folder, const std::vector<std::string>& names,
                                    const std::set<std::string>& animations,
                                    const std::set<std::string>& picture_folders) {
  std::set<std::string> stems, found, broken;
  for (const std::string& name : animations) stems.insert(stem_of(name));
  bool clips = false;
  for (const std::string& name : names) {
    if (std::ranges::find(endings, file_ending(name)) == std::end(endings)) continue;
    const std::string stem = stem_of(name), parent = fs::path(name).parent_path().generic_string();
    const bool inside =
        fs::path(stem).filename() == "actions" && picture_folders.contains(parent.empty() ? "." : parent);
    if (!inside && !stems.contains(stem) && !picture_folders.contains(stem)) continue;
    try {
      const bool own = holds_clips((fs::path(folder) / name).string());
      clips = clips || own;
      if (!own) found.insert(name);
    } catch (const Error&) {
      broken.insert(name);
    }
  }
  if (!clips) found.insert(broken.begin(), broken.end());
  return found;
}

}  // namespace convssm::data
