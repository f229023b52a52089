// Samples, configuration and notes. Images are embedded as data, enlarged by a whole factor and without smoothing, so
// that pixels stay pixels.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "convssm/report/html.h"
#include "convssm/report/scores.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

constexpr size_t kConfigBytes = 64 * 1024;
constexpr int64_t kWanted = 320, kTall = 360;  // pixels on the page; small frames are enlarged by a whole factor

// Evaluations and animations of training are two rows (data/comparison.h); strips of training may be more.
bool is_pair(const Sample& sample) {
  return sample.name.starts_with("evaluate") || (sample.name.starts_with("step-") && sample.type == "image/gif");
}

// Forecasts are logged beside a copy of the last frame; what a tokenizer gives back has nothing to stand beside.
bool gives_back(const RunView& run) {
  if (run.metrics.is_object() && text_at(run.metrics.value("protocol", nlohmann::json()), "task") == "reconstruct")
    return true;
  return RunLog::find(run.log.validation, "psnr_f01") != nullptr &&
         RunLog::find(run.log.validation, "copy_last.psnr_f01") == nullptr;
}

// The setting that an animation of the evaluation shows: evaluate.gif the first, evaluate-setting-2.gif the second.
const nlohmann::json* setting_of(const std::string& name, const RunView& run) {
  const auto settings = scored_settings(run.metrics);
  for (size_t i = 0; i < settings.size(); ++i) {
    if (name == (i == 0 ? "evaluate.gif" : fmt::format("evaluate-setting-{}.gif", i + 1))) return settings[i].scores;
  }
  return nullptr;
}

std::string caption_of(const Sample& sample, const RunView& run) {
  const std::string words = caption(sample.name);
  const nlohmann::json* setting = setting_of(sample.name, run);
  if (setting == nullptr) return words;
  auto context = number_at(*setting, "context");
  if (!context) context = number_at(run.metrics.value("protocol", nlohmann::json()), "context");
  if (!context) return words;
  if (gives_back(run)) return words + ": frames of test clips, encoded and decoded";
  const std::string name = text_at(*setting, "name");
  return fmt::format("{}{}: test clips; the first {:.0f} frames are seen, the others forecast", words,
                     name.empty() ? "" : ", " + name, *context);
}

// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_./-+=:,@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, harmless)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string image(const Sample& sample, const RunView& run) {
  const int64_t factor = std::max<int64_t>(1, std::min(kWanted / sample.width, kTall / sample.height));
  const bool back = gives_back(run);
  const std::string rows = is_pair(sample) || (back && sample.name.starts_with("step-"))
                               ? fmt::format("<div class=\"rows\"><span>{}</span><span>{}</span></div>",
                                             back ? "original" : "truth", back ? "reconstruction" : "forecast")
                               : "";
  return fmt::format(
      "<figure class=\"sample\"><div class=\"pair\">{6}<img alt=\"{0}\" title=\"{0}\" width=\"{1}\" height=\"{2}\" "
      "src=\"data:{3};base64,{4}\"></div><figcaption>{5}</figcaption></figure>\n",
      escape(sample.name), factor * sample.width, factor * sample.height, sample.type, base64(sample.bytes),
      escape(caption_of(sample, run)), rows);
}

// "000500" -> "500"
std::string without_leading_zeros(const std::string& word) {
  const bool digits = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits || word.empty()) return word;
  return word.substr(std::min(word.find_first_not_of('0'), word.size() - 1));
}

}  // namespace

std::string caption(const std::string& file_name) {
  std::string out, word;
  for (const char c : file_name.substr(0, file_name.rfind('.')) + " ") {
    if (c != ' ' && c != '-' && c != '_') {
      word += c;
      continue;
    }
    if (!word.empty()) out += (out.empty() ? "" : " ") + without_leading_zeros(word);
    word.clear();
  }
  return out;
}

std::string sample_images(const RunView& run) {
  std::string out;
  for (const Sample& sample : run.samples.shown) {
    if (!sample.name.starts_with(kErrorMap)) out += image(sample, run);  // those are part of the evaluation
  }
  if (!out.empty()) out = "<div class=\"samples\">\n" + out + "</div>\n";
  if (run.samples.left_out > 0) {
    out += fmt::format("<p class=\"soft small\">{} more in the folder samples/ would make this page too large.</p>\n",
                       run.samples.left_out);
  }
  return section("samples", "Samples", out);
}

std::string commands(const RunView& run) {
  if (run.config.empty()) return "";
  const std::string folder = run.path.substr(0, run.path.find_last_not_of('/') + 1);
  const std::string at = shell_word(folder.empty() ? run.path : folder);
  const bool done = text_at(run.status, "state") == "finished";
  std::string lines = fmt::format("convssm train {}/config.yaml --run {}    # the same run once more\n", at,
                                  shell_word(folder + "-again"));
  if (!done) lines += fmt::format("convssm train --run {} --resume\n", at);
  const bool steered = learned_from_actions(parsed_config(run));
  lines += fmt::format("convssm evaluate {0}\nconvssm generate {0} --context {1} --out future.gif\n", at,
                       steered ? "clip.npz --actions plan.npy" : "clip.npy --frames 600");
  return section("commands", "Commands", "<pre>" + escape(lines) + "</pre>\n");
}

std::string configuration(const RunView& run) {
  if (run.config.empty()) return "";
  const bool all = run.config.size() <= kConfigBytes;
  return section("config", "Configuration",
                 "<details open><summary>config.yaml</summary><pre>" + escape(run.config.substr(0, kConfigBytes)) +
                     (all ? "" : "...\n# long: the rest is in config.yaml\n") + "</pre></details>\n");
}

std::string notes(const RunView& run) {
  std::string items;
  for (const std::string& note : run.notes) items += "<li>" + escape(note) + "</li>\n";
  return section("notes", "Not in this report", items.empty() ? "" : "<ul class=\"soft\">\n" + items + "</ul>\n");
}

}  // namespace convssm::report
