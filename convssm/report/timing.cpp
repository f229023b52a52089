// Both halves of the study (frame rates, dropped frames) are brought to one form, lines over points, so that each table
// and chart is written once.
#include "convssm/report/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "convssm/report/style.h"

namespace convssm::report {
namespace {

using nlohmann::json;

constexpr const char *kPsnr = "psnr_f01", *kSsim = "ssim_gauss11";

// One half of the study: where its points lie, and what they are called.
struct Half {
  const json& lines;
  std::vector<double> percent;
  std::vector<std::string> labels;
  const char* x_name;
};

Half rates_of(const json& timing) {
  Half half{timing.at("rates").at("lines"), {}, {}, "frame rate"};
  for (const double rate : timing["rates"].at("rate")) {
    half.percent.push_back(100 * rate);
    half.labels.push_back(fmt::format("{:.3g}x", rate));
  }
  return half;
}

Half dropped_of(const json& timing) {
  Half half{timing.at("dropped").at("lines"), {}, {}, "frames missing"};
  for (const double probability : timing["dropped"].at("probability")) {
    half.percent.push_back(100 * probability);
    half.labels.push_back(fmt::format("{:.0f} %", 100 * probability));
  }
  return half;
}

double value_of(const json& line, const char* metric, size_t point) {
  const json& value = line.at(metric).at("mean").at(point);
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string cell(const json& line, const char* metric, size_t point) {
  const double value = value_of(line, metric, point);
  return value != value ? "-" : fmt::format("{:.{}f}", value, metric == kPsnr ? 2 : 3);
}

std::string text_table(const Half& half) {
  size_t width = 0;
  for (const json& line : half.lines) width = std::max(width, line.at("name").get<std::string>().size() + 2);
  std::string text;
  for (const char* metric : {kPsnr, kSsim}) {
    text += fmt::format("\n{:<{}}", fmt::format("{}, {}", metric == kPsnr ? "PSNR" : "SSIM", half.x_name), width);
    for (const std::string& label : half.labels) text += fmt::format("{:>8}", label);
    for (const json& line : half.lines) {
      text += fmt::format("\n  {:<{}}", line.at("name").get<std::string>(), width - 2);
      for (size_t point = 0; point < half.labels.size(); ++point) {
        text += fmt::format("{:>8}", cell(line, metric, point));
      }
    }
    text += "\n";
  }
  return text;
}

std::string clips_text(const json& timing) {
  return fmt::format("mean of {} test clips", timing.at("protocol").at("samples").get<int64_t>());
}

std::string span_text(const json& timing) {
  const json& protocol = timing.at("protocol");
  return fmt::format("forecasts from training interval {} to {}", protocol.at("context").get<int64_t>(),
                     protocol.at("frames").get<int64_t>());
}

// Lines of one forecaster, which is named before the comma, have one colour; those of the next frame are dashed.
void add_lines(Chart& chart, const Half& half) {
  std::vector<std::string> forecasters;
  for (const json& from : half.lines) {
    const std::string name = from.at("name"), forecaster = name.substr(0, name.find(','));
    auto place = std::find(forecasters.begin(), forecasters.end(), forecaster);
    if (place == forecasters.end()) place = forecasters.insert(place, forecaster);
    Line line{name, {}, static_cast<int>(place - forecasters.begin()), Stroke::solid};
    if (forecaster.starts_with("copy")) line.color = line_colors - 1;
    if (name.ends_with("next frame")) line.stroke = Stroke::dashed;
    for (size_t point = 0; point < half.percent.size(); ++point) {
      line.points.push_back({half.percent[point], value_of(from, kPsnr, point)});
    }
    std::sort(line.points.begin(), line.points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    chart.lines.push_back(line);
  }
}

}  // namespace

std::string timing_text(const json& timing) {
  return fmt::format("{}, {}; PSNR in dB; frame rate 1x: that of training\n{}{}", clips_text(timing), span_text(timing),
                     text_table(rates_of(timing)), text_table(dropped_of(timing)));
}

Chart rates_chart(const json& timing) {
  Chart chart{"timing_rates",
              "Forecasts at other frame rates than in training",
              "PSNR in dB, " + clips_text(timing),
              "frame rate, % of that in training (log scale)",
              Scale::linear,
              {},
              Scale::logarithmic};
  add_lines(chart, rates_of(timing));
  return chart;
}

Chart dropped_chart(const json& timing) {
  Chart chart{"timing_dropped",
              "Forecasts with frames missing at random",
              "PSNR in dB one interval after each frame seen, " + clips_text(timing),
              "frames missing, %",
              Scale::linear,
              {},
              Scale::linear};
  add_lines(chart, dropped_of(timing));
  return chart;
}

}  // namespace convssm::report
