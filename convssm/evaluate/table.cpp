// The result of an evaluation as a table for a terminal.
#include <fmt/format.h>

#include "convssm/evaluate/evaluate.h"

namespace convssm::evaluate {
namespace {

struct Column {
  const char* metric;
  const char* title;
  int digits;
};

constexpr Column kColumns[] = {{"psnr_f01", "PSNR (dB)", 2}, {"ssim_gauss11", "SSIM", 3}};

std::string cell(const nlohmann::json& row, const Column& column) {
  if (!row.contains(column.metric)) return "-";
  const auto& value = row[column.metric];
  return fmt::format("{:.{}f} ± {:.{}f}", value["mean"].get<double>(), column.digits, value["std"].get<double>(),
                     column.digits);
}

// Pads by columns: "±" is two bytes and one column.
std::string padded(const std::string& text, int width) {
  const int extra = text.find("±") == std::string::npos ? 0 : 1;
  return fmt::format("{:<{}}", text, width + extra);
}

}  // namespace

std::string table_text(const nlohmann::json& metrics) {
  const auto& protocol = metrics["protocol"];
  std::string text = fmt::format("{} test clips, {} frames of context; mean ± spread between chunks of {} clips\n",
                                 protocol["samples"].get<int64_t>(), protocol["context"].get<int64_t>(),
                                 protocol["chunk"].get<int64_t>());
  for (const auto& horizon : metrics["horizons"]) {
    text += fmt::format("\n{:<28}", fmt::format("{} frames ahead", horizon["frames"].get<int64_t>()));
    for (const Column& column : kColumns) text += fmt::format("{:<18}", column.title);
    text += "\n";
    for (const auto& row : horizon["rows"]) {
      text += fmt::format("  {:<26}", row["name"].get<std::string>());
      for (const Column& column : kColumns) text += padded(cell(row, column), 18);
      text += "\n";
    }
  }
  return text;
}

}  // namespace convssm::evaluate
