// yaml-cpp lays the text out and escapes it. Decided here is what stays on one line, and how scalars are written: texts
// are quoted and numbers get a point wherever YAML 1.1 would take them for something else than YAML 1.2.
#include <yaml-cpp/emitter.h>

#include <cmath>

#include "convssm/base/error.h"
#include "convssm/io/text.h"
#include "convssm/io/yaml.h"
#include "convssm/io/yaml_scalar.h"

namespace convssm::io {
namespace {

using nlohmann::json;

constexpr size_t max_line = 80;  // of a list or map in brackets
constexpr size_t max_short_map = 4;
constexpr size_t max_key = 1000;  // YAML: 1024 characters up to the colon

void write_text(YAML::Emitter& out, const std::string& text) {
  if (!is_utf8(text)) fail(ErrorKind::usage, "[to_yaml] the text {} is not UTF-8", in_quotes(text));
  if (!is_plain_text(text)) out << YAML::DoubleQuoted;
  for (const char* refused : {"\x7f", "\u2028", "\u2029"}) {  // by YAML 1.1, where yaml-cpp leaves them as they are
    if (text.find(refused) != std::string::npos) out << YAML::EscapeNonAscii;
  }
  out << text;
}

void write_key(YAML::Emitter& out, const std::string& key) {
  if (key.size() > max_key) fail(ErrorKind::usage, "[to_yaml] the key {} is longer than YAML allows", in_quotes(key));
  out << YAML::Key;
  write_text(out, key);
  out << YAML::Value;
}

// The shortest digits that give the same double, with a point: YAML 1.1 takes 1e-05 for a text.
std::string real_of(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", value);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

bool all_primitive(const json& value) {
  return std::ranges::none_of(value, [](const json& item) { return item.is_structured(); });
}

// Lists of scalars or of short lists of scalars, and small maps of scalars, read better on one line.
bool prefers_flow(const json& value) {
  if (value.empty()) return true;
  if (value.dump().size() > max_line) return false;
  if (value.is_object()) return value.size() <= max_short_map && all_primitive(value);
  return std::ranges::all_of(
      value, [](const json& item) { return item.is_primitive() || (item.is_array() && all_primitive(item)); });
}

void write(YAML::Emitter& out, const json& value) {
  if (value.is_string()) return write_text(out, value.get_ref<const std::string&>());
  if (value.is_number_float()) return void(out << real_of(value.get<double>()));
  if (value.is_null()) return void(out << YAML::Null);
  if (value.is_primitive()) return void(out << value.dump());
  if (prefers_flow(value)) out << YAML::Flow;
  if (value.is_object())
    out << YAML::BeginMap;
  else
    out << YAML::BeginSeq;
  for (const auto& [key, item] : value.items()) {
    if (value.is_object()) write_key(out, key);
    write(out, item);
  }
  if (value.is_object())
    out << YAML::EndMap;
  else
    out << YAML::EndSeq;
}

}  // namespace

std::string to_yaml(const json& value) {
  YAML::Emitter out;
  out.SetNullFormat(YAML::LowerNull);
  write(out, value);
  if (!out.good()) fail(ErrorKind::usage, "[to_yaml] {}", out.GetLastError());
  return std::string(out.c_str(), out.size()) + '\n';
}

}  // namespace convssm::io
