// printf's %g would switch to exponents and change the number of digits along an axis; here the digits follow from the
// step or the magnitude. Units change at 999.95, where one decimal would round up to 1000.
#include "convssm/report/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace convssm::report {
namespace {

// "12.30" -> "12.3", "5.00" -> "5"
std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

struct Unit {
  double size;
  const char* name;
};

Unit unit_of(double magnitude) {
  if (magnitude >= 1e9) return {1e9, "G"};
  if (magnitude >= 1e6) return {1e6, "M"};
  if (magnitude >= 1e3) return {1e3, "k"};
  return {1, ""};
}

// "5e-05" -> "5e-5"
std::string scientific(double value) {
  std::string text = fmt::format("{:.2e}", value);
  const size_t e = text.find('e');
  return without_trailing_zeros(text.substr(0, e)) + fmt::format("e{}", std::stoi(text.substr(e + 1)));
}

}  // namespace

size_t letters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string compact(double value) {
  if (!std::isfinite(value)) return "–";
  Unit unit = unit_of(std::abs(value));
  if (std::abs(value) / unit.size >= 999.95) unit = unit_of(1000 * unit.size);
  return without_trailing_zeros(fmt::format("{:.1f}", value / unit.size)) + unit.name;
}

std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = text.size(); i > first + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "–";
  const double magnitude = std::abs(value);
  if (magnitude != 0 && (magnitude < 1e-3 || magnitude >= 1e9)) return scientific(value);
  const int decimals = magnitude < 1e-9 ? 0 : std::clamp(3 - static_cast<int>(std::floor(std::log10(magnitude))), 0, 6);
  return without_trailing_zeros(fmt::format("{:.{}f}", value, decimals));
}

std::string tick_label(double value, double step) {
  const double magnitude = std::abs(value);
  if (magnitude < step * 1e-6) return "0";
  if (magnitude >= 1e12 || magnitude < 1e-3 || (step < 1e-3 && magnitude < 1e-2)) return scientific(value);
  Unit unit = magnitude >= 1e4 ? unit_of(magnitude) : Unit{1, ""};
  if (step < 1e-3 * unit.size) unit = {1, ""};  // 1000000.5, not 1.0000005M
  const double digits = -std::floor(std::log10(step / unit.size) + 1e-9);
  const int decimals = static_cast<int>(std::clamp(digits, 0.0, 6.0));
  return without_trailing_zeros(fmt::format("{:.{}f}", value / unit.size, decimals)) + unit.name;
}

}  // namespace convssm::report
