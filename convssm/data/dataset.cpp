#include "convssm/data/dataset.h"

#include <nlohmann/json.hpp>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"
#include "convssm/base/option_reader.h"
#include "convssm/data/folder.h"
#include "convssm/data/moving_mnist.h"

namespace convssm::data {

const char* name(Split split) { return split == Split::train ? "train" : "test"; }

Split parse_split(const std::string& text) {
  if (text == "train") return Split::train;
  if (text == "test") return Split::test;
  fail(ErrorKind::usage, "[data] a split is train or test, got '{}'", text);
}

FrameFormat FrameFormat::from_json(const nlohmann::json& json) {
  FrameFormat format;
  OptionReader read("FrameFormat", json);
  read("channels", format.channels);
  read("height", format.height);
  read("width", format.width);
  read("low", format.low);
  read("high", format.high);
  read.finish();
  return format;
}

nlohmann::json FrameFormat::to_json() const {
  return {{"channels", channels}, {"height", height}, {"width", width}, {"low", low}, {"high", high}};
}

const std::vector<DatasetInfo>& all_datasets() {
  static const std::vector<DatasetInfo> table{
      {"moving-mnist", "digits that move and bounce, made on the fly", make_moving_mnist},
      {"folder", "recordings of your own, in .npy and .npz files", make_folder},
  };
  return table;
}

std::shared_ptr<const Dataset> make_dataset(const nlohmann::json& options, uint64_t seed) {
  std::vector<std::string> names;
  for (const DatasetInfo& dataset : all_datasets()) names.emplace_back(dataset.name);
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
