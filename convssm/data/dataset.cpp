// The datasets by name. The table starts with those of this library, so that a user's own cannot take their names.
#include "convssm/data/dataset.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/data/folder.h"
#include "convssm/data/moving_mnist.h"

namespace convssm::data {
namespace {

std::vector<DatasetInfo>& table() {
  static std::vector<DatasetInfo> all{
      {"moving-mnist", "digits that move and bounce, made on the fly", make_moving_mnist},
      {"folder", "recordings of your own: .npy, .npz, .gif and .mp4 files", make_folder},
  };
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

Clips read_clips(const Dataset& dataset, Split split, uint64_t first, int64_t count, int64_t frames) {
  std::vector<Clips> rows;
  for (uint64_t i = first; i < first + static_cast<uint64_t>(count); ++i) {
    rows.push_back(dataset.clip(split, i, frames));
  }
  return stack_rows(rows);
}

const std::vector<DatasetInfo>& all_datasets() { return table(); }

void register_dataset(DatasetInfo info) {
  if (info.name.empty() || !info.make)
    fail(ErrorKind::usage, "[data] a dataset needs a name and a function that makes it");
  if (std::ranges::any_of(table(), [&](const DatasetInfo& other) { return other.name == info.name; })) {
    fail(ErrorKind::usage, "[data] there is a dataset '{}' already", info.name);
  }
  table().push_back(std::move(info));
}

std::shared_ptr<const Dataset> make_dataset(const nlohmann::json& options, uint64_t seed) {
  std::vector<std::string> names;
  for (const DatasetInfo& dataset : all_datasets()) names.push_back(dataset.name);
  if (!options.is_object() || !options.contains("name") || !options["name"].is_string()) {
    fail(ErrorKind::usage, "[data] expected the name of a dataset ({}) in the option 'name', got {}",
         fmt::join(names, ", "), options.dump());
  }
  const std::string wanted = options["name"];
  nlohmann::json rest = options;
  rest.erase("name");
  for (const DatasetInfo& dataset : all_datasets()) {
    if (wanted == dataset.name) return dataset.make(rest, seed);
  }
  fail_unknown("[data] unknown dataset", wanted, names);
}

}  // namespace convssm::data
