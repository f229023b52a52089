// The head of the page: state, progress and the few numbers that one looks for first. The time left is extrapolated
// from the mean speed so far, which is steadier than the last steps'.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "convssm/base/progress.h"
#include "convssm/report/html.h"
#include "convssm/report/numbers.h"
#include "convssm/report/sections.h"

namespace convssm::report {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) out += (out.empty() ? "" : between) + part;
  }
  return out;
}

// Recordings of one's own by the name of their file or folder.
std::string data_name(const RunView& run) {
  const nlohmann::json config = parsed_config(run);
  const std::string path = config.contains("data") ? text_at(config["data"], "path") : "";
  const std::string clean = path.substr(0, path.find_last_not_of('/') + 1);
  return clean.empty() ? text_at(run.status, "data") : std::filesystem::path(clean).filename().string();
}

// The class that colours a state; unknown words get none.
std::string state_class(const std::string& state) {
  for (const char* known : {"running", "finished", "stopped", "failed"}) {
    if (state == known) return state;
  }
  return "soft";
}

std::string number_card(const std::string& value, const std::string& label) {
  return value.empty() ? ""
                       : fmt::format("<div class=\"number\"><b>{}</b><span>{}</span></div>\n", escape(value), label);
}

std::string last_value(const RunView& run, const char* field) {
  const Curve* curve = RunLog::find(run.log.training, field);
  return curve == nullptr || curve->points.empty() ? "" : short_number(curve->points.back().y);
}

// The best value so far of a validation metric for which more or less is better.
std::string best_value(const RunView& run, const char* field) {
  const Curve* curve = RunLog::find(run.log.validation, field);
  const int better = metric_style(field).better;
  double best = std::nan("");
  for (const Point& point : curve == nullptr ? std::vector<Point>{} : curve->points) {
    if (std::isfinite(point.y) && !(better * point.y <= better * best)) best = point.y;
  }
  return std::isfinite(best) ? short_number(best) : "";
}

std::string duration_at(const nlohmann::json& status, const char* key) {
  const auto seconds = number_at(status, key);
  return seconds && *seconds >= 0 ? format_duration(*seconds) : "";
}

std::string count_at(const nlohmann::json& status, const char* key) {
  const auto value = number_at(status, key);
  return value ? compact(*value) : "";
}

std::string progress_bar(const nlohmann::json& status) {
  const auto step = number_at(status, "step"), steps = number_at(status, "steps");
  if (!step || !steps || !(*steps > 0) || !(*steps < 1e15) || !(*step >= 0)) return "";
  const double part = std::min(1.0, *step / *steps);
  std::string text = fmt::format("step {} of {} ({:.0f}%)", grouped(std::llround(*step)), grouped(std::llround(*steps)),
                                 std::floor(100 * part));
  const auto seconds = number_at(status, "seconds");
  if (text_at(status, "state") == "running" && seconds && *seconds > 0 && *step > 0 && part < 1) {
    text += fmt::format(", about {} left", format_duration(*seconds / *step * (*steps - *step)));
  }
  return fmt::format("<div class=\"bar{}\"><div style=\"width:{:.1f}%\"></div></div>\n<p class=\"soft small\">{}</p>\n",
                     part >= 1 ? " done" : "", 100 * part, text);
}

std::string note_box(const nlohmann::json& status) {
  const std::string note = text_at(status, "note");
  if (note.empty()) return "";
  return fmt::format("<div class=\"note {}\">{}</div>\n", state_class(text_at(status, "state")), escape(note));
}

}  // namespace

std::string page_title(const RunView& run) {
  const std::string title = joined({text_at(run.status, "model"), data_name(run)}, " on ");
  return title.empty() ? (run.name.empty() ? "convssm run" : run.name) : title;
}

std::string overview(const RunView& run) {
  const std::string state = text_at(run.status, "state");
  std::string out = fmt::format("<header id=\"overview\">\n<div class=\"title\"><h1>{}</h1>", escape(page_title(run)));
  if (!state.empty()) out += fmt::format("<span class=\"badge {}\">{}</span>", state_class(state), escape(state));
  out += "</div>\n";
  const std::string version = text_at(run.status, "version");
  const std::string where = joined({run.name == page_title(run) ? "" : run.name, text_at(run.status, "machine"),
                                    version.empty() ? "" : "convssm " + version},
                                   " · ");
  if (!where.empty()) out += fmt::format("<p class=\"soft small\">{}</p>\n", escape(where));
  out += progress_bar(run.status) + note_box(run.status);
  const std::string cards = number_card(last_value(run, "loss"), "training loss") +
                            number_card(best_value(run, "loss"), "best validation loss") +
                            number_card(best_value(run, "psnr_f01"), "best validation PSNR (dB)") +
                            number_card(best_value(run, "ssim_gauss11"), "best validation SSIM") +
                            number_card(last_value(run, "frames_per_second"), "frames per second") +
                            number_card(duration_at(run.status, "seconds"), "training time") +
                            number_card(count_at(run.status, "parameters"), "parameters");
  if (!cards.empty()) out += "<div class=\"numbers\">\n" + cards + "</div>\n";
  return out + "</header>\n";
}

}  // namespace convssm::report
