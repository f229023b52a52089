// Everything that comes from a run goes through escape(), and the page carries a policy that forbids loading anything:
// a run folder may come from a stranger.
#include "convssm/report/html.h"

#include <fmt/format.h>

#include <cstdint>

#include "convssm/io/text.h"
#include "convssm/report/style.h"

namespace convssm::report {
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

// Bytes of the UTF-8 character at the start of `text`, 0 if there is none.
size_t character_size(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    if (io::is_utf8(text.substr(0, size))) return size;
  }
  return 0;
}

void append_escaped(std::string& out, std::string_view character) {
  switch (character[0]) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      const auto code = static_cast<uint8_t>(character[0]);
      if ((code >= 0x20 && code != 0x7f) || code == '\n' || code == '\t') out += character;
  }
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size == 0)
      out += "\xef\xbf\xbd";
    else
      append_escaped(out, text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string base64(std::string_view bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) { return i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u; };
    const uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += digits[bits >> 18];
    out += digits[bits >> 12 & 63];
    out += i + 1 < bytes.size() ? digits[bits >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? digits[bits & 63] : '=';
  }
  return out;
}

std::string section(std::string_view id, std::string_view title, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", escape(id), escape(title), content);
}

std::string render(const Page& page) {
  const std::string refresh = page.refresh_seconds > 0
                                  ? fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", page.refresh_seconds)
                                  : "";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n{}"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      kPolicy, refresh, escape(page.title), style_sheet, page.body, script);
}

}  // namespace convssm::report
