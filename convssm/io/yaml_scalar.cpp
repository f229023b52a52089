// By hand and not by the conversions of yaml-cpp, which follow YAML 1.1: there `no` is false and 012 is ten. Numbers
// that do not fit are errors, since rounding a seed of 64 bits to a double would change it silently.
#include "convssm/io/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "convssm/base/error.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

using nlohmann::json;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

template <size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::ranges::find(words, text) != words.end();
}

size_t skip_digits(std::string_view text, size_t position) {
  while (position < text.size() && is_digit(text[position])) ++position;
  return position;
}

enum class Form { text, integer, real };

// [0-9]+ is an integer, (\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? is a real number; `text` is without its sign.
Form decimal_form(std::string_view text) {
  const size_t whole = skip_digits(text, 0);
  if (whole == text.size()) return whole > 0 ? Form::integer : Form::text;
  size_t end = whole;
  if (text[end] == '.') {
    end = skip_digits(text, end + 1);
    if (whole == 0 && end == 1) return Form::text;
  } else if (whole == 0) {
    return Form::text;
  }
  if (end == text.size()) return Form::real;
  if (text[end] != 'e' && text[end] != 'E') return Form::text;
  ++end;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
  const size_t last = skip_digits(text, end);
  return last == text.size() && last > end ? Form::real : Form::text;
}

[[noreturn]] void does_not_fit(std::string_view text, std::string_view type) {
  fail(ErrorKind::data, "the number {} does not fit {}; put it in quotes if it is a text", in_quotes(text), type);
}

json integer(std::string_view text, std::string_view digits, int base, bool negative) {
  uint64_t magnitude = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (result.ptr != digits.data() + digits.size()) return std::string(text);  // 0xzz
  constexpr uint64_t lowest = uint64_t{1} << 63;
  if (result.ec != std::errc() || (negative && magnitude > lowest)) does_not_fit(text, "64 bits");
  if (!negative) return magnitude;
  return static_cast<int64_t>(-magnitude);
}

json real(std::string_view text, std::string_view digits, bool negative) {
  double magnitude = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
  if (result.ec != std::errc()) does_not_fit(text, "a double");
  return negative ? -magnitude : magnitude;
}

}  // namespace

json parse_plain_scalar(std::string_view text) {
  if (is_one_of(text, std::array<std::string_view, 5>{"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, std::array<std::string_view, 3>{"true", "True", "TRUE"})) return true;
  if (is_one_of(text, std::array<std::string_view, 3>{"false", "False", "FALSE"})) return false;
  if (is_one_of(text, std::array<std::string_view, 3>{".nan", ".NaN", ".NAN"}))
    return std::numeric_limits<double>::quiet_NaN();
  if (text.starts_with("0x") && text.size() > 2) return integer(text, text.substr(2), 16, false);
  if (text.starts_with("0o") && text.size() > 2) return integer(text, text.substr(2), 8, false);

  const bool negative = text.front() == '-';
  const std::string_view digits = negative || text.front() == '+' ? text.substr(1) : text;
  if (is_one_of(digits, std::array<std::string_view, 3>{".inf", ".Inf", ".INF"}))
    return (negative ? -1 : 1) * std::numeric_limits<double>::infinity();
  switch (decimal_form(digits)) {
    case Form::integer:
      return integer(text, digits, 10, negative);
    case Form::real:
      return real(text, digits, negative);
    case Form::text:
      break;
  }
  return std::string(text);
}

bool is_plain_text(std::string_view text) {
  if (text.empty() || text.size() > 200) return false;
  if (!is_letter(text.front()) && text.front() != '_' && text.front() != '/') return false;
  const auto harmless = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_-./+").find(c) != std::string_view::npos;
  };
  if (!std::ranges::all_of(text, harmless)) return false;
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return !is_one_of(lower,
                    std::array<std::string_view, 9>{"y", "n", "yes", "no", "on", "off", "true", "false", "null"});
}

}  // namespace convssm::io
