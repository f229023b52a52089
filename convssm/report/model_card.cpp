// Each section is made from the files that it needs and left out without them. Commands on the page are complete and
// can be copied: paths, options and frame counts are those of this model.
#include "convssm/report/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "convssm/base/progress.h"
#include "convssm/io/yaml.h"
#include "convssm/report/markdown.h"
#include "convssm/report/numbers.h"
#include "convssm/report/scores.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Card {
  std::string name;  // as the commands call the folder
  RunView folder;
  json config = json::object(), about = json::object();
  std::string context;  // the name of its file, "" if there is none
  bool has_actions = false;
  bool tokenizer = false;  // it makes no forecasts

  json at(const json& object, const char* pointer) const {
    const json::json_pointer where(pointer);
    return object.contains(where) ? object[where] : json();
  }
};

Card read_card(const std::string& path) {
  Card card;
  const fs::path clean = fs::path(path + "/").parent_path();
  card.name = clean.is_absolute() ? clean.filename().string() : clean.generic_string();
  card.folder = read_run_view(path, 0);
  if (!card.folder.config.empty()) card.config = io::parse_yaml(card.folder.config, path + "/config.yaml");
  if (fs::exists(path + "/export.json")) card.about = io::read_yaml(path + "/export.json");  // JSON is YAML
  for (const char* name : {"context.npy", "context.npz"}) {
    if (fs::exists(path + "/" + name)) card.context = name;
  }
  card.has_actions = fs::exists(path + "/actions.npy");
  card.tokenizer = card.about.value("tokenizer", json(false)) == json(true);
  return card;
}

std::string whole(const json& number) { return number.is_number() ? grouped(std::llround(number.get<double>())) : "?"; }

std::string plain(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string data_text(const json& data) {
  std::string text = data.is_object() ? data.value("name", "?") : "?", options;
  for (const auto& [key, value] : data.items()) {
    if (key != "name") options += fmt::format("{}{} {}", options.empty() ? ": " : ", ", key, plain(value));
  }
  return text + options;
}

// "64 x 64, 2 channels, values 250 to 310, 0 to 1": a range for each channel that has another than the one before it.
// Files of version 0.1 hold a number of channels with one range.
std::string frames_text(const json& frames) {
  const json found = frames.value("channels", json());
  const bool listed = found.is_array();
  std::vector<std::string> ranges;
  for (const json& channel : listed ? found : json::array({frames})) {
    if (!channel.is_object()) continue;
    std::string range = fmt::format("{} to {}", short_number(number_at(channel, "low").value_or(0)),
                                    short_number(number_at(channel, "high").value_or(0)));
    if (ranges.empty() || ranges.back() != range) ranges.push_back(std::move(range));
  }
  const std::string count = listed ? std::to_string(found.size()) : plain(found);
  return fmt::format("{} x {}, {} channel{}, values {}", plain(frames.value("height", json())),
                     plain(frames.value("width", json())), count, count == "1" ? "" : "s", fmt::join(ranges, ", "));
}

std::string facts(const Card& card) {
  const auto row = [](const char* what, const std::string& value) {
    return markdown_row({what, markdown_text(value)});
  };
  const json& status = card.folder.status;
  const json frames = card.at(card.about, "/frames"), train = card.at(card.config, "/train");
  std::string out = markdown_head({"", ""}, true);
  if (card.config.contains("data")) out += row("data", data_text(card.config["data"]));
  if (frames.is_object()) out += row("frames", frames_text(frames));
  if (status.contains("parameters")) out += row("parameters", whole(status["parameters"]));
  std::string training = fmt::format("{} steps", whole(card.at(card.about, "/step")));
  if (train.is_object() && train.contains("batch") && train.contains("frames")) {
    training += fmt::format(" of {} clips of {} frames", plain(train["batch"]), plain(train["frames"]));
  }
  const auto seconds = number_at(status, "seconds");
  if (seconds && status.value("step", json()) == card.about.value("step", json(-1))) {
    training += ", " + format_duration(*seconds);
  }
  out += row("training", training);
  const json bytes = card.at(card.about, "/weights/bytes"), checksum = card.at(card.about, "/weights/checksum");
  if (bytes.is_number()) {
    out += row("weights", fmt::format("`model.safetensors`, {:.2f} MB, float32, checksum {}", bytes.get<double>() / 1e6,
                                      plain(checksum)));
  }
  return out;
}

std::string score(const json& row, const std::string& metric) {
  if (!row.contains(metric)) return "-";
  const auto mean = number_at(row[metric], "mean"), spread = number_at(row[metric], "std");
  const int decimals = metric_style(metric).decimals;
  if (!mean) return "-";
  return fmt::format("{:.{}f}", *mean, decimals) + (spread ? fmt::format(" ± {:.{}f}", *spread, decimals) : "");
}

// The table of one setting, "" if it has no scores.
std::string score_rows(const Card& card, const json& setting) {
  const json horizons = card.at(setting, "/horizons");
  if (!horizons.is_array() || horizons.empty() || card.at(horizons, "/0/rows/0").is_null()) return "";
  std::vector<std::string> metrics;
  for (const auto& [key, value] : horizons[0]["rows"][0].items()) {
    if (value.is_object()) metrics.push_back(key);
  }
  metrics = in_usual_order(metrics);
  Cells heads = {card.tokenizer ? "what comes back" : "forecast", card.tokenizer ? "frames" : "frames ahead"};
  for (const std::string& metric : metrics) {
    heads.push_back(metric + better_arrow(metric_style(metric).better));
  }
  std::string out = markdown_head(heads);
  for (const json& horizon : horizons) {
    for (const json& row : horizon["rows"]) {
      Cells cells = {markdown_text(text_at(row, "name")), plain(horizon["frames"])};
      for (const std::string& metric : metrics) cells.push_back(score(row, metric));
      out += markdown_row(cells);
    }
  }
  return out;
}

std::string scores(const Card& card) {
  const json protocol = card.at(card.folder.metrics, "/protocol");
  std::string tables, seen;
  for (const ScoredSetting& setting : scored_settings(card.folder.metrics)) {
    const std::string table = score_rows(card, *setting.scores);
    if (table.empty()) continue;
    if (!setting.name.empty()) {
      tables += fmt::format("{}Setting {}, {} frames of context:\n\n", tables.empty() ? "" : "\n",
                            markdown_text(setting.name), whole(setting.scores->value("context", json())));
    }
    tables += table;
  }
  if (tables.empty()) return "";
  const json samples = protocol.value("samples", json()), clips = protocol.value("clips", samples);
  const std::string what = samples == clips ? whole(samples) + " test clips"
                                            : fmt::format("{} windows of {} test clip{}", whole(samples), whole(clips),
                                                          clips == 1 ? "" : "s");
  if (!card.folder.metrics.contains("settings") && !card.tokenizer)
    seen = fmt::format(", {} frames of context", whole(protocol.value("context", json())));
  return fmt::format(
      "\n## Scores\n\n{}{}; mean, and ± spread between chunks of {}, by `convssm evaluate` (`metrics.json`).\n\n{}",
      what, seen, whole(protocol.value("chunk", json())), tables);
}

// A clip like those it was trained on. The digit is drawn by the program, one of training only if that had such.
std::string make_command(const json& data, const json& context) {
  std::vector<const char*> kept = {"digits", "image_size", "digit_size", "step", "subpixel"};
  if (!data.contains("images")) kept.insert(kept.end(), {"shapes", "mix_splits", "seed"});
  std::string options;
  for (const char* key : kept) {
    if (data.contains(key)) options += fmt::format(" {}={}", key, plain(data[key]));
  }
  return fmt::format("    convssm data make clip.npy{} --split test --clips 1 --frames {}\n", options,
                     context.is_number_integer() ? context.get<int64_t>() : 25);
}

std::string usage(const Card& card) {
  const json data = card.at(card.config, "/data");
  const bool digits = data.is_object() && data.value("name", "") == "moving-mnist";
  const bool steered = learned_from_actions(card.config);
  const std::string context = !card.context.empty() ? card.name + "/" + card.context
                              : steered             ? "clip.npz"
                                                    : "clip.npy";
  const std::string frames = card.has_actions ? fmt::format("--actions {}/actions.npy", card.name)
                             : steered        ? "--actions plan.npy"
                                              : "--frames 600";
  std::string out = "\n## Use\n\n";
  const bool makes = digits && card.context.empty() && !card.tokenizer;
  const json first = card.at(card.config, "/evaluate/settings/0/context");
  if (makes) out += make_command(data, first.is_null() ? card.at(card.config, "/evaluate/context") : first);
  out += card.tokenizer
             ? fmt::format("    convssm train CONFIG.yaml model.tokenizer={}\n", card.name)
             : fmt::format("    convssm generate {} --context {} {} --out future.gif\n", card.name, context, frames);
  std::string places;
  for (const char* key : {"images", "test_images", "path"}) {
    if (data.is_object() && data.contains(key)) places += fmt::format(" data.{}={}", key, plain(data[key]));
  }
  out += fmt::format("    convssm evaluate {}{} --out scores\n\n", card.name, places);
  if (!card.context.empty()) out += fmt::format("`{}` holds the first frames of the first test clip. ", card.context);
  if (card.has_actions)
    out += "`actions.npy` holds the actions of the frames after them: action k leads to generated frame k. ";
  if (makes) out += "The first command makes a clip to try, of a drawn digit. ";
  out += places.empty() ? "" : "The last one needs the data, at the paths that it names. ";
  return out + "`config.yaml` is how the model was trained, `log.jsonl` how that went.\n";
}

}  // namespace

std::string model_card(const std::string& folder, const std::string& licence) {
  const Card card = read_card(folder);
  const std::string about = text_at(card.folder.status, "model");
  return fmt::format("# {}\n\nA {}, trained by convssm {}. {}\n\n", fs::path(card.name).filename().string(),
                     about.empty() ? "model" : about, plain(card.about.value("version", json("?"))),
                     card.tokenizer
                         ? "A tokenizer: it turns frames into a small grid and back, for models of such grids."
                         : "It sees the first frames of a clip and generates the rest in a rollout.") +
         facts(card) + scores(card) + usage(card) +
         fmt::format("\nLicence of the weights: {}.\n", licence.empty() ? "not stated" : licence);
}

}  // namespace convssm::report
