// The UTF-8 check follows the table of well-formed sequences of the Unicode standard: it refuses overlong forms and
// surrogates, which other readers refuse too, so what is written here can be read there.
#include "convssm/io/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "convssm/base/error.h"
#include "convssm/base/nearest.h"

namespace convssm::io {
namespace {

constexpr size_t shown_bytes = 60;
constexpr size_t compared_bytes = 200;
constexpr size_t shown_names = 5;

// Bytes of the UTF-8 sequence at the start of `text`, 0 if it is not valid.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    const bool overlong = lead == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    const bool overlong = lead == 0xf0 && byte(1) < 0x90;
    const bool beyond_unicode = lead == 0xf4 && byte(1) >= 0x90;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond_unicode ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, shown_bytes)) {
    if (c >= 0x20 && c < 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  return out + (text.size() > shown_bytes ? "...'" : "'");
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void fail_missing(const std::string& file, std::string_view name, const std::vector<std::string>& names) {
  std::vector<std::string> candidates;  // the comparison takes time and memory of the product of two lengths
  for (const std::string& other : names) {
    if (name.size() <= compared_bytes && other.size() <= compared_bytes) candidates.push_back(other);
  }
  const std::string similar = nearest(name, candidates);
  if (!similar.empty()) {
    fail(ErrorKind::data, "{}: holds no array {}; did you mean {}?", file, in_quotes(name), in_quotes(similar));
  }
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), shown_names); ++i) shown.push_back(in_quotes(names[i]));
  fail(ErrorKind::data, "{}: holds no array {}, but {} others: {}{}", file, in_quotes(name), names.size(),
       fmt::join(shown, ", "), names.size() > shown_names ? ", ..." : "");
}

}  // namespace convssm::io
