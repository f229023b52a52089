// The datasets by name. The table starts with those of this library, so that a user's own cannot take their names.
#include "convssm/data/dataset.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/registry.h"
#include "convssm/data/folder.h"
#include "convssm/data/moving_mnist.h"
#include "convssm/data/world_clips.h"

namespace convssm::data {
namespace {

std::vector<DatasetInfo> own_datasets() {
  std::vector<DatasetInfo> all = {
      {"moving-mnist", "digits that move and bounce, made on the fly", make_moving_mnist, finer_moving_mnist},
      {"folder", "recordings of your own: arrays (.npy, .npz, .h5), videos, .tif files, folders of frames, codes",
       make_folder},
  };
  for (DatasetInfo& world : world_datasets()) all.push_back(std::move(world));
  return all;
}

Registry<DatasetInfo>& registry() {
  static Registry<DatasetInfo> all("dataset", own_datasets());
  return all;
}

}  // namespace

const char* name(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
  }
  return "?";
}

Split parse_split(const std::string& text) {
  for (const Split split : all_splits) {
    if (text == name(split)) return split;
  }
  fail(ErrorKind::usage, "[data] a split is train, valid or test, got '{}'", text);
}

Clips Dataset::part(Split split, uint64_t index, int64_t first, int64_t frames) const {
  return frames_of(clip(split, index, first + frames), first, first + frames);
}

DataFormat format_of(const Dataset& dataset) { return {dataset.format(), dataset.actions(), dataset.codes()}; }

Clips read_clips(const Dataset& dataset, Split split, uint64_t first, int64_t count, int64_t frames) {
  std::vector<Clips> rows;
  for (uint64_t i = first; i < first + static_cast<uint64_t>(count); ++i) {
    rows.push_back(dataset.clip(split, i, frames));
  }
  return stack_rows(rows);
}

const std::vector<DatasetInfo>& all_datasets() { return registry().all(); }

void register_dataset(DatasetInfo info) { registry().add(std::move(info)); }

const DatasetInfo& find_dataset(const nlohmann::json& options) {
  if (!options.is_object() || !options.contains("name") || !options["name"].is_string()) {
    fail(ErrorKind::usage, "[data] expected the name of a dataset ({}) in the option 'name', got {}",
         fmt::join(registry().names(), ", "), options.dump());
  }
  return registry().find(options["name"]);
}

std::shared_ptr<const Dataset> make_dataset(const nlohmann::json& options, uint64_t seed) {
  const DatasetInfo& dataset = find_dataset(options);
  nlohmann::json rest = options;
  rest.erase("name");
  return dataset.make(rest, seed);
}

}  // namespace convssm::data
