// The configs are compiled into the program, so that the bench measures the same models wherever it is run from. The
// recomputing Transformer is the Transformer's config with one option changed.
#include "bench/bench_models.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "bench/bench_configs.h"
#include "convssm/base/error.h"
#include "convssm/io/yaml.h"

namespace convssm::bench {
namespace {

const std::string kRecompute = "_recompute";

}  // namespace

run::Config bench_config(const std::string& size, const std::string& name) {
  for (const BenchConfig& config : kBenchConfigs) {
    if (config.size == size && config.name == name) return run::Config::from_json(io::parse_yaml(config.yaml, name));
  }
  fail(ErrorKind::usage, "[bench] there is no model '{}' of the size '{}'", name, size);
}

at::Tensor BenchModel::clip(int64_t frames) const {
  return run::make_dataset(config)->clip(data::Split::train, 0, frames).video;
}

BenchModel make_bench_model(const std::string& size, const std::string& name) {
  const bool recompute = name.ends_with(kRecompute);
  BenchModel made{name, {}, {}, bench_config(size, recompute ? name.substr(0, name.size() - kRecompute.size()) : name)};
  if (recompute) made.config.model["core"]["recompute"] = true;
  made.format = run::make_dataset(made.config)->format();
  made.model = run::make_model(made.config, made.format);
  return made;
}

const std::vector<std::string>& paper_names() {
  static const std::vector<std::string> names{"convs5", "convssm_random", "convlstm",    "convgru",
                                              "s5",     "performer",      "transformer", "transformer_recompute"};
  return names;
}

std::string display_name(const std::string& name) {
  static const std::map<std::string, std::string> names{{"convs5", "ConvS5"},
                                                        {"convssm_random", "ConvSSM, random state"},
                                                        {"convlstm", "ConvLSTM"},
                                                        {"convgru", "ConvGRU"},
                                                        {"s5", "S5"},
                                                        {"performer", "Performer"},
                                                        {"transformer", "Transformer, cached"},
                                                        {"transformer_recompute", "Transformer, recomputed"}};
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

}  // namespace convssm::bench
