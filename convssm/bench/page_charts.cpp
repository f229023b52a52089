// Rows are named <quantity>.<model>.<frames>; a chart collects those of one quantity. Both axes are logarithmic: a
// straight line then shows its power.
#include "convssm/bench/page_charts.h"

#include <algorithm>
#include <cstdlib>

#include "convssm/bench/bench_models.h"

namespace convssm::bench {
namespace {

using report::Chart;
using report::Line;
using report::Scale;

// A model has the same colour in all charts.
int color_of(const std::string& model) {
  const auto& names = paper_names();
  return static_cast<int>(std::find(names.begin(), names.end(), model) - names.begin());
}

// In training there is one Transformer.
std::string line_name(const std::string& prefix, const std::string& model) {
  if (prefix == "scaling.rollout") return display_name(model) + ", all generated";
  return model == "transformer" && prefix != "scaling.generate" ? "Transformer" : display_name(model);
}

// One line per model of the rows <prefix>.<model>.<frames>.
void add_lines(Chart& chart, const Results& results, const std::string& prefix) {
  for (const Row& row : results.starting_with(prefix + ".")) {
    const std::string rest = row.name.substr(prefix.size() + 1), model = rest.substr(0, rest.find('.'));
    const std::string name = line_name(prefix, model);
    auto line = std::find_if(chart.lines.begin(), chart.lines.end(), [&](const Line& l) { return l.name == name; });
    if (line == chart.lines.end()) {
      const auto stroke = model.ends_with("_recompute") ? report::Stroke::dashed : report::Stroke::solid;
      line = chart.lines.insert(line, {name, {}, color_of(model), stroke});
    }
    line->points.push_back({std::strtod(rest.c_str() + model.size() + 1, nullptr), row.value});
  }
}

Chart make(const char* title, const char* hint, const char* x_label) {
  return {"", title, hint, x_label, Scale::logarithmic, {}, Scale::logarithmic};
}

}  // namespace

std::vector<std::pair<std::string, Chart>> page_charts(const Results& results) {
  Chart time = make("Training: time of a step", "seconds, small models, one clip", "frames of the clip");
  add_lines(time, results, "scaling.train");
  Chart memory = make("Training: memory of a step", "MB of tensors at the peak, small models", "frames of the clip");
  add_lines(memory, results, "scaling.memory");
  Chart frame = make("Generation: time of one frame", "ms, the paper's sizes, one clip", "frames seen before it");
  add_lines(frame, results, "scaling.rollout");
  add_lines(frame, results, "scaling.generate");
  std::vector<std::pair<std::string, Chart>> charts;
  for (auto& [name, chart] : {std::pair("training_time", time), {"training_memory", memory}, {"generation", frame}}) {
    if (!chart.lines.empty()) charts.emplace_back(name, chart);
  }
  return charts;
}

}  // namespace convssm::bench
