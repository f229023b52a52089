// A nested value is a block; one that is simple and fits a line of 100 columns is written in brackets, which options
// read best in. Texts are quoted and numbers get a point wherever YAML 1.1 would take them for something else than YAML
// 1.2.
#include <cmath>

#include "convssm/base/error.h"
#include "convssm/io/text.h"
#include "convssm/io/yaml.h"
#include "convssm/io/yaml_scalar.h"

namespace convssm::io {
namespace {

using nlohmann::json;

constexpr size_t max_line = 100;
constexpr size_t max_short_map = 4;
constexpr size_t max_key = 1000;  // YAML: 1024 characters up to the colon

// Characters that are line breaks, invisible or not allowed in YAML, as one of its escapes; "" for all others.
std::string escape(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) {
    return position + i < text.size() ? static_cast<unsigned char>(text[position + i]) : 0u;
  };
  const unsigned code = byte(0);
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '"') return "\\\"";
  if (code == '\\') return "\\\\";
  if (code < 0x20 || code == 0x7f) return fmt::format("\\x{:02x}", code);
  if (code == 0xc2 && byte(1) < 0xa0) return ++position, fmt::format("\\x{:02x}", byte(0));
  if (code == 0xe2 && byte(1) == 0x80 && (byte(2) == 0xa8 || byte(2) == 0xa9)) {
    position += 2;
    return fmt::format("\\u20{:02x}", byte(0) - 0x80);
  }
  if (code == 0xef && byte(1) == 0xbb && byte(2) == 0xbf) return position += 2, "\\ufeff";
  return "";
}

std::string text_of(const std::string& text) {
  if (is_plain_text(text)) return text;
  if (!is_utf8(text)) fail(ErrorKind::usage, "[to_yaml] the text {} is not UTF-8", in_quotes(text));
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string escaped = escape(text, i);
    if (escaped.empty())
      out += c;
    else
      out += escaped;
  }
  return out + '"';
}

// The shortest digits that give the same double, with a point: YAML 1.1 takes 1e-05 for a text.
std::string real_of(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", value);
  const size_t end = std::min(text.find('e'), text.size());
  if (text.find('.') == std::string::npos) text.insert(end, ".0");
  return text;
}

std::string scalar_of(const json& value) {
  if (value.is_string()) return text_of(value.get_ref<const std::string&>());
  if (value.is_number_float()) return real_of(value.get<double>());
  if (value.is_binary() || value.is_discarded()) {
    fail(ErrorKind::usage, "[to_yaml] a value of type {} cannot be written", value.type_name());
  }
  return value.dump();
}

std::string key_of(const std::string& key) {
  std::string text = text_of(key);
  if (text.size() > max_key) fail(ErrorKind::usage, "[to_yaml] the key {} is longer than YAML allows", in_quotes(key));
  return text;
}

// On one line: a scalar, a list of such lists, an empty map.
std::string flow_of(const json& value) {
  if (value.is_primitive()) return scalar_of(value);
  std::vector<std::string> parts;
  for (const auto& [key, item] : value.items()) {
    parts.push_back(value.is_object() ? fmt::format("{}: {}", key_of(key), flow_of(item)) : flow_of(item));
  }
  return fmt::format("{}{}{}", value.is_object() ? "{" : "[", fmt::join(parts, ", "), value.is_object() ? "}" : "]");
}

bool all_primitive(const json& value) {
  for (const auto& item : value) {
    if (item.is_structured()) return false;
  }
  return true;
}

// Lists of scalars or of short lists of scalars, and small maps of scalars, read better on one line.
bool prefers_flow(const json& value) {
  if (value.is_primitive() || value.empty()) return true;
  if (value.is_object()) return value.size() <= max_short_map && all_primitive(value);
  for (const auto& item : value) {
    if (item.is_object() || (item.is_array() && !all_primitive(item))) return false;
  }
  return true;
}

void write_block(std::string& out, const json& value, size_t indent);

// A value behind `key:` or `-`, on the same line if it is short.
void write_item(std::string& out, const json& value, size_t indent) {
  if (prefers_flow(value)) {
    const std::string flow = flow_of(value);
    const size_t column = out.size() - (out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1);
    if (value.is_primitive() || value.empty() || column + 1 + flow.size() <= max_line) {
      out += ' ' + flow + '\n';
      return;
    }
  }
  out += '\n';
  write_block(out, value, indent + 2);
}

void write_block(std::string& out, const json& value, size_t indent) {
  for (const auto& [key, item] : value.items()) {
    out.append(indent, ' ');
    out += value.is_object() ? key_of(key) + ":" : "-";
    write_item(out, item, indent);
  }
}

}  // namespace

std::string to_yaml(const json& value) {
  std::string out;
  if (value.is_primitive() || value.empty())
    out = flow_of(value) + '\n';
  else
    write_block(out, value, 0);
  return out;
}

}  // namespace convssm::io
