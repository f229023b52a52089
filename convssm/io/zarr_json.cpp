// Python's json module writes NaN and Infinity without quotes, and the metadata of many stores has such attributes. JSON has no such
// values, so the text gets the quotes before it is parsed, and a string of that name counts as a number.
#include "convssm/io/zarr_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "convssm/base/json.h"
#include "convssm/io/text.h"
#include "convssm/io/zarr_number.h"

namespace convssm::io {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, double>, 3> special_numbers = {{
    {"-Infinity", -std::numeric_limits<double>::infinity()},
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
}};

std::string with_quoted_numbers(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (!in_string) {
      const auto is_here = [&](const auto& special) { return text.substr(i).starts_with(special.first); };
      if (const auto* special = std::ranges::find_if(special_numbers, is_here); special != special_numbers.end()) {
        out.append("\"").append(special->first).append("\"");
        i += special->first.size();
        continue;
      }
    }
    const char c = text[i++];
    out += c;
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\' && i < text.size()) out += text[i++];
  }
  return out;
}

}  // namespace

void ZarrPlace::refuse(const std::string& reason) const {
  throw FormatError(file, 0, folder.empty() ? reason : in_quotes(folder) + ": " + reason);
}

Json parse_zarr_json(std::string_view text, const ZarrPlace& place) {
  Json json = parse_json(with_quoted_numbers(text), place.file);
  if (!json.is_object()) place.fail("the metadata must be a JSON object");
  return json;
}

const Json* zarr_member(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

const Json& zarr_object(const ZarrPlace& place, const Json& object, const char* key) {
  const Json* value = zarr_member(object, key);
  if (value == nullptr || !value->is_object()) place.fail("expected an object as '{}'", key);
  return *value;
}

std::string zarr_text(const ZarrPlace& place, const Json& object, const char* key) {
  const Json* value = zarr_member(object, key);
  if (value == nullptr || !value->is_string()) place.fail("expected a string as '{}'", key);
  return value->get<std::string>();
}

std::vector<int64_t> zarr_lengths(const ZarrPlace& place, const Json& object, const char* key) {
  constexpr size_t most_dimensions = 64;
  const Json* list = zarr_member(object, key);
  if (list == nullptr || !list->is_array()) place.fail("expected a list of whole numbers as '{}'", key);
  if (list->size() > most_dimensions) place.fail("'{}' has more than {} dimensions", key, most_dimensions);
  std::vector<int64_t> lengths;
  for (const Json& value : *list) {
    const bool whole = value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
    if (!whole) place.fail("expected whole numbers from 0 to 2^63-1 in '{}'", key);
    lengths.push_back(value.get<int64_t>());
  }
  return lengths;
}

ZarrNamed zarr_named(const ZarrPlace& place, const Json& value, const char* what) {
  if (value.is_string()) return {value.get<std::string>(), Json::object()};
  if (!value.is_object()) place.fail("expected an object with a name as {}", what);
  const Json* configuration = zarr_member(value, "configuration");
  if (configuration != nullptr && !configuration->is_object()) place.fail("the configuration of {} is no object", what);
  return {zarr_text(place, value, "name"), configuration ? *configuration : Json::object()};
}

std::optional<double> zarr_number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  for (const auto& [name, number] : special_numbers) {
    if (value.get_ref<const std::string&>() == name) return number;
  }
  return std::nullopt;
}

std::optional<std::vector<std::byte>> zarr_element(DType dtype, const Json& value) {
  std::vector<std::byte> element(dtype_size(dtype));
  if (value.is_number_integer() && !is_float(dtype)) {  // exact, where a double would not be
    const bool negative = value.get<int64_t>() < 0 && !value.is_number_unsigned();
    return store_integer(dtype, value.get<uint64_t>(), negative, element) ? std::optional(element) : std::nullopt;
  }
  if (value.is_string() && value.get_ref<const std::string&>().starts_with("0x")) {
    return store_hex(value.get_ref<const std::string&>().substr(2), element) ? std::optional(element) : std::nullopt;
  }
  const auto number = zarr_number(value);
  return number && store_number(dtype, *number, element) ? std::optional(element) : std::nullopt;
}

GridAttributes zarr_attributes(const Json& object) {
  GridAttributes attributes;
  for (const auto& [key, value] : object.items()) {
    GridAttribute attribute;
    bool numbers = value.is_array() && !value.empty();
    if (const auto number = zarr_number(value)) {
      attribute.numbers = {*number};
      if (value.is_number_integer()) attribute.dtype = DType::i64;
    } else if (value.is_string()) {
      attribute.text = value.get<std::string>();
    } else {
      for (size_t i = 0; numbers && i < value.size(); ++i) {
        const auto one = zarr_number(value[i]);
        numbers = one.has_value();
        if (one) attribute.numbers.push_back(*one);
      }
      if (!numbers) continue;
      const auto is_whole = [](const Json& one) { return one.is_number_integer(); };
      if (std::ranges::all_of(value, is_whole)) attribute.dtype = DType::i64;
    }
    attributes.emplace(key, std::move(attribute));
  }
  return attributes;
}

}  // namespace convssm::io
