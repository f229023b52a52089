// Depth is counted on the text, before there is a value. Up to the first mistake in it the count is exact, and beyond that
// the parser does not go.
#include "convssm/base/json.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "convssm/base/read_file.h"

namespace convssm {
namespace {

constexpr uint64_t value_of_text = 48;  // bytes of a value for a byte of text, at most: an array of empty objects

int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& name) {
  require_file_memory(name, "its JSON", text.size(), value_of_text);
  if (nesting(text) > max_json_depth) {
    fail(ErrorKind::data, "{}: JSON with more than {} levels of nesting", name, max_json_depth);
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    // The library's text repeats the last token, which may be the whole file.
    const std::string what = error.what();
    fail(ErrorKind::data, "{}: not valid JSON: {}", name, what.substr(0, what.find("; last read")).substr(0, 200));
  }
}

std::optional<nlohmann::json> try_parse_json(std::string_view text) {
  try {
    return parse_json(text, "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<nlohmann::json> try_read_json(const std::string& path) {
  const auto text = try_read_file(path);
  return text ? try_parse_json(*text) : std::nullopt;
}

}  // namespace convssm
