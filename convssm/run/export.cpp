// Everything is written to a folder beside the target, which takes its place at the end: an export is whole, or the one
// before it is still there.
#include "convssm/run/export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "convssm/base/atomic_file.h"
#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/read_file.h"
#include "convssm/base/staged_folder.h"
#include "convssm/base/version.h"
#include "convssm/data/write_clips.h"
#include "convssm/io/checksum.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/io/yaml.h"
#include "convssm/models/tokenizer.h"
#include "convssm/run/config.h"
#include "convssm/run/model_file.h"

namespace convssm::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFiles[] = {"model.safetensors", "config.yaml", "export.json", "log.jsonl",  "status.json",
                                  "metrics.json",      "context.npy", "context.npz", "actions.npy"};
constexpr int64_t kContext = 25;  // frames, if the config does not say; of actions to come

void check_room(const ExportOptions& o) {
  for (const char* name : kFiles) {
    const std::string path = o.out + "/" + name;
    if (o.force || !fs::exists(path)) continue;
    fail(ErrorKind::usage, "{} is there already; --force replaces the export in this folder", path);
  }
}

json without_places(json value) {
  if (value.is_structured()) {
    for (json& part : value) part = without_places(part);
  }
  if (!value.is_string()) return value;
  const fs::path path(value.get<std::string>());
  return path.is_absolute() ? json(path.filename().string()) : value;
}

// "its weights 'vgg16' are not in /home/me/weights" -> "... are not at hand"
json without_folder(const json& reason) {
  if (!reason.is_string()) return reason;
  const auto text = reason.get<std::string>();
  const size_t place = text.find(" in /");
  return place == std::string::npos ? text : text.substr(0, place) + " at hand";
}

std::string plain(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// What a forecast can start from.
struct ExportedContext {
  io::Array video;     // [T,H,W,C] in the units of the data
  at::Tensor actions;  // [T] or [T,A], of the context and of frames after it; undefined if the data has none
  std::string key;     // their name
};

// What the clips of the section were made or encoded from, which can be had again where a folder is gone; else the section.
json origin(const json& section) {
  const json path = section.is_object() ? section.value("path", json()) : json();
  const auto made = path.is_string() ? data::made_from(path.get<std::string>()) : std::nullopt;
  return made.value_or(section);
}

class Exporter {
 public:
  explicit Exporter(const ExportOptions& o) : o_(o), loaded_(load_model(o.run, {.step = o.step})), folder_(o.out) {}

  Exported run() {
    copy("log.jsonl");
    copy("status.json");
    copy_metrics();
    if (loaded_.model->as_forecaster() != nullptr) write_context();
    ModelRecipe recipe = loaded_.recipe;
    if (recipe.config.contains("data")) recipe.config["data"] = without_places(origin(recipe.config["data"]));
    write("config.yaml", io::to_yaml(recipe.config));
    save_model(path("model.safetensors"), *loaded_.model, recipe);
    done("model.safetensors");
    write("export.json", about().dump(1) + "\n");
    folder_.commit(kFiles);
    return result_;
  }

 private:
  std::string path(const std::string& name) const { return folder_.path(name); }
  void done(const std::string& name) { result_.files.push_back(name); }

  void write(const std::string& name, const std::string& text) {
    replace_file(path(name), text);
    done(name);
  }

  void copy(const std::string& name) {
    const std::string from = o_.run + "/" + name;
    if (fs::exists(from)) return write(name, read_file(from));
    result_.notes.push_back(fmt::format("the run has no {}", name));
  }

  // Why scores would be wrong beside these weights; "" if they are theirs. What an older file does not say is not asked.
  std::string why_not(const json& metrics) const {
    const json::json_pointer where("/protocol/checkpoint");
    const json about = metrics.is_object() && metrics.contains(where) ? metrics[where] : json();
    const json step = about.is_object() ? about.value("step", json()) : json();
    const ModelRecipe& recipe = loaded_.recipe;
    if (!step.is_number_integer()) return "damaged";
    if (step != recipe.step) return fmt::format("of step {}", step.dump());
    if (about.value("checksum", json(loaded_.checksum)) != loaded_.checksum)
      return fmt::format("of another checkpoint of step {}", step.dump());
    const json weights = about.value("weights", json(recipe.weights)), changes = about.value("changes", json::array());
    if (weights != recipe.weights)
      return fmt::format("of the {} weights, the export has the {} ones", plain(weights), recipe.weights);
    if (!changes.empty()) return fmt::format("of a changed model ({})", plain(changes[0]));
    const json precision = metrics["protocol"].value("precision", json("float32"));
    return precision == "float32" ? "" : fmt::format("of {}, the export has float32", plain(precision));
  }

  void copy_metrics() {
    const std::string from = o_.run + "/metrics.json";
    const bool there = fs::exists(from);
    json metrics = there ? try_parse_json(read_file(from)).value_or(json()) : json();
    const std::string problem = there ? why_not(metrics) : "missing";
    if (problem.empty()) {
      json& protocol = metrics["protocol"];
      if (protocol.contains("data")) protocol["data"] = without_places(protocol["data"]);
      for (json& reason : protocol["left_out"]) reason = without_folder(reason);
      return write("metrics.json", metrics.dump(1) + "\n");
    }
    result_.notes.push_back(
        fmt::format("no scores: {} is {}. Run 'convssm evaluate {}' before the export", from, problem, o_.run));
  }

  // The first frames of the first test clip; nothing, with a note, if they cannot be had.
  std::optional<ExportedContext> context() {
    try {
      const Config config = Config::from_json(loaded_.recipe.config);
      const auto dataset = make_dataset(config);
      const json::json_pointer first("/settings/0/context");
      const json asked =
          config.evaluate.contains(first) ? config.evaluate[first] : config.evaluate.value("context", json(kContext));
      const int64_t longest = dataset->longest(data::Split::test);
      const int64_t wanted = asked.is_number_integer() ? std::max<int64_t>(1, asked.get<int64_t>()) : kContext;
      const int64_t frames = std::min(wanted, longest);
      if (dataset->actions().maps > 0) {
        result_.notes.push_back(
            "no context: arrays do not hold the maps that the model is given in advance (data.forcings); forecasts go "
            "on from "
            "files of fields");
        return std::nullopt;
      }
      const bool steered = !dataset->actions().none();
      const int64_t coming = steered ? std::min(kContext, longest - frames) : 0;
      const data::Clips clip = dataset->clip(data::Split::test, 0, frames + coming);
      const data::Clips seen = data::frames_of(clip, 0, frames);
      const bool gaps = seen.valid.defined() && !loaded_.recipe.frames.is_8_bit();  // of floats: NaN
      const at::Tensor video = gaps ? data::with_missing(seen) : models::video_of(*loaded_.model, seen).cpu();
      ExportedContext context{io::to_array(data::in_units(video[0], loaded_.recipe.frames)), {}, ""};
      if (steered) {
        const json key = config.data.value("actions_key", json(""));
        context.actions = clip.actions[0];
        context.key = key.is_string() && key != "" ? plain(key) : "actions";
      }
      return context;
    } catch (const Error& error) {
      result_.notes.push_back(fmt::format("no context, the data of the run cannot be read: {}", error.what()));
      return std::nullopt;
    }
  }

  void write_context() {
    const auto found = context();
    if (!found) return;
    if (found->actions.defined()) return write_steered(*found);
    io::write_npy(path("context.npy"), found->video);
    done("context.npy");
  }

  // The actions of the context beside it, those of the frames after it in a file of their own.
  void write_steered(const ExportedContext& context) {
    const at::Tensor& actions = context.actions;
    const int64_t frames = context.video.shape()[0];
    const std::vector<io::NamedArray> arrays{{"data", context.video},
                                             {context.key, io::to_array(actions.slice(0, 0, frames))}};
    io::write_npz(path("context.npz"), arrays, true);
    done("context.npz");
    if (actions.size(0) == frames)
      return result_.notes.push_back("no actions.npy: the test clip ends with the context");
    io::write_npy(path("actions.npy"), io::to_array(actions.slice(0, frames)));
    done("actions.npy");
  }

  json about() const {
    const std::string weights = path("model.safetensors");
    return {{"format", 1},
            {"version", kVersion},
            {"step", loaded_.recipe.step},
            {"frames", loaded_.recipe.frames.to_json()},
            {"tokenizer", loaded_.model->as_forecaster() == nullptr},
            {"weights", {{"bytes", fs::file_size(weights)}, {"checksum", io::file_checksum(weights)}}},
            {"exported_from", {{"checksum", loaded_.checksum}}}};
  }

  const ExportOptions& o_;
  LoadedModel loaded_;
  StagedFolder folder_;
  Exported result_;
};

}  // namespace

Exported export_run(const ExportOptions& options) {
  if (!fs::is_directory(options.run + "/checkpoints")) {
    fail(ErrorKind::data, "{} is not a run folder: it has no checkpoints/", options.run);
  }
  if (fs::is_directory(options.out + "/checkpoints")) {
    fail(ErrorKind::usage, "{} is a run folder, its files would be replaced; name another folder with --out",
         options.out);
  }
  check_room(options);
  return Exporter(options).run();
}

}  // namespace convssm::run
