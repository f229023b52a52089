// The tables of the page, from rows that are found by their names. A goal stands in the text of a row ("goal 0.9"), so
// that the page and the terminal show the same one.
#include <cmath>
#include <regex>

#include "convssm/bench/bench_models.h"
#include "convssm/bench/page.h"
#include "convssm/report/markdown.h"
#include "convssm/report/numbers.h"

namespace convssm::bench {
namespace {

using report::markdown_head;
using report::markdown_row;

// Three digits are what a measurement of this kind is good for.
std::string three(double value) {
  if (value == 0) return "0";
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  return decimals <= 0 ? report::grouped(std::llround(value)) : fmt::format("{:.{}f}", value, std::min(decimals, 6));
}

std::string value_of(const Results& results, const std::string& name) {
  const Row* row = results.find(name);
  return row == nullptr ? "" : three(row->value);
}

std::string goal_of(const Row& row) {
  std::smatch found;
  return std::regex_search(row.what, found, std::regex("goal ([0-9.]+)")) ? found[1].str() : "";
}

std::string ratio_of(const Row& row) {
  if (row.reference == 0) return "";
  return row.spread > 0 ? fmt::format("{:.2f} ± {:.2f}", row.ratio, row.spread) : fmt::format("{:.2f}", row.ratio);
}

std::string size_of(const std::string& name) {
  return name.find(".paper") != std::string::npos ? "paper's size" : "small";
}

// "generate.convs5.paper.int8.p50" -> "generation, paper's size, int8: median of a frame"
std::string peer_title(const std::string& name) {
  std::string title = (name.starts_with("train") ? "training, " : "generation, ") + size_of(name);
  if (name.find(".int8") != std::string::npos) title += ", int8";
  if (name.ends_with(".p50")) title += ": median of a frame";
  if (name.ends_with(".p99")) title += ": 99 of 100 frames within";
  return title;
}

std::string peer_line(const Row& row) {
  return markdown_row({peer_title(row.name), fmt::format("{} {}", three(row.value), row.unit),
                       row.reference > 0 ? fmt::format("{} {}", three(row.reference), row.unit) : row.what,
                       ratio_of(row), goal_of(row)});
}

double ratio(const Results& results, const std::string& above, const std::string& below) {
  const Row *a = results.find(above), *b = results.find(below);
  return a == nullptr || b == nullptr || b->value == 0 ? 0 : a->value / b->value;
}

std::string claim(const char* text, const char* paper, double here, const std::string& how) {
  return here == 0 ? "" : markdown_row({text, paper, fmt::format("{}x", three(here)), how});
}

// The slowest hundred frames of a long rollout over the fastest.
double rollout_range(const Results& results) {
  double least = 0, most = 0;
  for (const Row& row : results.starting_with("scaling.rollout.convs5.")) {
    least = least == 0 ? row.value : std::min(least, row.value);
    most = std::max(most, row.value);
  }
  return least == 0 ? 0 : most / least;
}

}  // namespace

std::string machine_block(const Results& results) {
  const auto text = [&](const char* key) {
    const auto found = results.about.find(key);
    return found == results.about.end() ? std::string("?") : found->is_string() ? std::string(*found) : found->dump();
  };
  if (results.rows.empty()) return "";
  return fmt::format("{}, {} threads, {}; convssm {}.\n", text("machine"), text("threads"), text("isa"),
                     text("version"));
}

std::string claims_block(const Results& results) {
  std::string out;
  out += claim("training: ConvS5 against ConvLSTM", "3x", ratio(results, "cost.convlstm.train", "cost.convs5.train"),
               "time per frame of a step");
  out += claim("generation: ConvS5 against a Transformer that recomputes, 1200 frames", "429x",
               ratio(results, "cost.convs5.generate.1200", "cost.transformer_recompute.generate.1200"), "frames/s");
  out += claim("the same against a Transformer with a cache", "",
               ratio(results, "cost.convs5.generate.1200", "cost.transformer.generate.1200"), "frames/s");
  out += claim("generation: ConvS5 after 400 frames against after 1200", "1x",
               ratio(results, "cost.convs5.generate.400", "cost.convs5.generate.1200"), "frames/s");
  out += claim("slowest against fastest 100 frames of 1200", "1x", rollout_range(results), "medians, all generated");
  return out.empty() ? "" : markdown_head({"claim", "paper", "here", "what is compared"}, true) + out;
}

std::string cost_block(const Results& results) {
  if (results.starting_with("cost.").empty()) return "";
  std::string out = markdown_head({"model", "parameters, M", "GFLOPs, frame 3", "GFLOPs, frame 1200",
                                   "training, s/frame", "memory of a step, GB", "frames/s after 400", "800", "1200"});
  for (const std::string& name : paper_names()) {
    const auto cell = [&](const char* what) { return value_of(results, fmt::format("cost.{}.{}", name, what)); };
    if (cell("parameters").empty()) continue;
    out += markdown_row({display_name(name), cell("parameters"), cell("gflops"), cell("gflops.1200"), cell("train"),
                         cell("memory"), cell("generate.400"), cell("generate.800"), cell("generate.1200")});
  }
  return out;
}

std::string peer_block(const Results& results) {
  std::string lines, differences, version;
  for (const char* prefix : {"generate.convs5.", "train.convs5."}) {
    for (const Row& row : results.starting_with(prefix)) {
      lines += peer_line(row);
      if (row.what.starts_with("PyTorch ")) version = row.what.substr(0, row.what.find(';', row.what.find(')')));
    }
  }
  if (lines.empty()) return "";
  for (const Row& row : results.starting_with("difference.convs5.")) {
    const std::string what = row.name.substr(row.name.rfind('.') + 1);
    differences += fmt::format("{}{} of the {} model {:.1e}", differences.empty() ? "" : ", ", what,
                               size_of(row.name) == "small" ? "small" : "paper's", row.value);
  }
  std::string out = markdown_head({"ConvS5", "convssm", "PyTorch", "ratio", "goal"}) + lines;
  if (!version.empty()) out += fmt::format("\n{}.", version);
  if (!differences.empty()) {
    out += fmt::format(
        " Both have the same parameters; they differ by (frames in [-1,1], loss and norm of gradients relative): {}.\n",
        differences);
  }
  return out;
}

std::string limit_block(const Results& results) {
  std::string lines;
  for (const Row& row : results.starting_with("limit.")) {
    lines += markdown_row(
        {(row.name.find(".train.") != std::string::npos ? "training, " : "generation, ") + size_of(row.name),
         three(row.value), three(row.reference), ratio_of(row), goal_of(row)});
  }
  if (lines.empty()) return "";
  return markdown_head({"ConvS5", "whole, ms", "its convolutions alone, ms", "part", "goal"}) + lines;
}

std::string conv_block(const Results& results) {
  std::string lines;
  for (const Row& row : results.starting_with("conv.")) {
    if (row.unit == "relative") continue;
    const std::string shape = row.name.ends_with(".train") ? row.name.substr(0, row.name.size() - 6) : row.name;
    const Row* error = results.find(shape + ".error");
    const std::string errors = error != nullptr ? fmt::format("{:.1e}, {:.1e}", error->value, error->reference) : "";
    lines += markdown_row(
        {"`" + row.name + "`", three(row.value) + " ms", three(row.reference) + " ms", ratio_of(row), errors});
  }
  const char* errors = "error of Winograd, of direct";
  return lines.empty() ? "" : markdown_head({"convolution", "Winograd", "direct", "ratio", errors}, true) + lines;
}

std::string kernels_block(const Results& results) {
  std::string lines;
  for (const char* prefix : {"scan.", "layer.", "memory.", "metrics."}) {
    for (const Row& row : results.starting_with(prefix)) {
      lines += markdown_row({"`" + row.name + "`", fmt::format("{} {}", three(row.value), row.unit), ratio_of(row),
                             goal_of(row), row.what.substr(0, row.what.find(';'))});
    }
  }
  return lines.empty() ? "" : markdown_head({"row", "value", "ratio", "goal", "the reference"}, true) + lines;
}

}  // namespace convssm::bench
