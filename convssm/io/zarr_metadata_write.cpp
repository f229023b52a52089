// In version 2 the element of chunks that are not there is what xarray takes for missing, so the attribute _FillValue becomes it; in
// version 3 it is an attribute again, of floats as the base64 text of a little-endian double.
#include "convssm/io/zarr_metadata_write.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "convssm/io/grid_layout.h"

namespace convssm::io {
namespace {

using Json = nlohmann::ordered_json;

std::string zarr_text_of(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

// "<f4" of version 2.
std::string zarr_v2_type(DType dtype) {
  const char kind = dtype == DType::bool8 ? 'b' : is_float(dtype) ? 'f' : dtype_name(dtype)[0];
  const size_t size = dtype_size(dtype);
  return fmt::format("{}{}{}", size == 1 ? '|' : '<', kind, size);
}

std::string zarr_v3_type(DType dtype) {
  if (dtype == DType::bool8) return "bool";
  const char* kind = is_float(dtype) ? "float" : dtype_name(dtype)[0] == 'u' ? "uint" : "int";
  return fmt::format("{}{}", kind, 8 * dtype_size(dtype));
}

Json zarr_number_of(double number, DType dtype) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  if (is_float(dtype)) return number;
  if (dtype == DType::u64) return static_cast<uint64_t>(number);
  return static_cast<int64_t>(number);
}

std::string base64_of(double number) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned char bytes[9] = {};
  std::memcpy(bytes, &number, sizeof number);
  std::string text;
  for (size_t i = 0; i < sizeof bytes; i += 3) {
    const unsigned bits = static_cast<unsigned>(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
    for (const int shift : {18, 12, 6, 0}) text += digits[bits >> shift & 63];
  }
  text.back() = '=';  // the ninth byte is none
  return text;
}

Json zarr_attributes_of(const GridAttributes& attributes) {
  Json json = Json::object();
  for (const auto& [name, attribute] : attributes) {
    if (name == "_FillValue") continue;
    if (attribute.is_text()) {
      json[name] = attribute.text;
      continue;
    }
    Json numbers = Json::array();
    for (const double number : attribute.numbers) numbers.push_back(zarr_number_of(number, attribute.dtype));
    json[name] = numbers.size() == 1 ? numbers[0] : numbers;
  }
  return json;
}

const double* missing_value(const GridVariable& variable) {
  const auto at = variable.attributes.find("_FillValue");
  return at == variable.attributes.end() ? nullptr : at->second.numbers.data();
}

Json zarr_v2_array(const GridLayout& layout, const GridVariable& variable) {
  const double* missing = missing_value(variable);
  Json json{{"zarr_format", 2}, {"shape", variable.shape}, {"chunks", variable.chunks}};
  json["dtype"] = zarr_v2_type(variable.dtype);
  json["compressor"] = nullptr;
  if (layout.compressed) {
    json["compressor"] = {
        {"id", "blosc"}, {"cname", "zstd"}, {"clevel", zarr_pack_level}, {"shuffle", 1}, {"blocksize", 0}};
  }
  json["fill_value"] = missing ? zarr_number_of(*missing, variable.dtype) : Json();
  json["order"] = "C";
  json["filters"] = nullptr;
  return json;
}

Json zarr_v3_array(const GridLayout& layout, const GridVariable& variable) {
  const double* missing = missing_value(variable);
  const bool is_bool = variable.dtype == DType::bool8;
  Json json{{"zarr_format", 3}, {"node_type", "array"}, {"shape", variable.shape}};
  json["data_type"] = zarr_v3_type(variable.dtype);
  json["chunk_grid"] = {{"name", "regular"}, {"configuration", {{"chunk_shape", variable.chunks}}}};
  json["chunk_key_encoding"] = {{"name", "default"}, {"configuration", {{"separator", "/"}}}};
  const Json none = is_bool ? Json(false) : zarr_number_of(0, variable.dtype);
  json["fill_value"] = missing && !is_bool ? zarr_number_of(*missing, variable.dtype) : none;
  json["codecs"] = Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}});
  if (layout.compressed) {
    Json options{{"typesize", dtype_size(variable.dtype)}, {"cname", "zstd"}, {"clevel", zarr_pack_level}};
    options["shuffle"] = "shuffle";
    options["blocksize"] = 0;
    json["codecs"].push_back({{"name", "blosc"}, {"configuration", options}});
  }
  json["attributes"] = zarr_attributes_of(variable.attributes);
  if (missing) {
    json["attributes"]["_FillValue"] =
        is_float(variable.dtype) ? Json(base64_of(*missing)) : zarr_number_of(*missing, variable.dtype);
  }
  json["dimension_names"] = variable.dimensions;
  return json;
}

std::map<std::string, std::string> zarr_v2_metadata(const GridLayout& layout) {
  Json all = Json::object();
  all[".zgroup"] = {{"zarr_format", 2}};
  all[".zattrs"] = zarr_attributes_of(layout.attributes);
  for (const GridVariable& variable : layout.variables) {
    all[variable.name + "/.zarray"] = zarr_v2_array(layout, variable);
    Json attributes = zarr_attributes_of(variable.attributes);
    attributes["_ARRAY_DIMENSIONS"] = variable.dimensions;
    all[variable.name + "/.zattrs"] = std::move(attributes);
  }
  std::map<std::string, std::string> files;
  for (const auto& [key, json] : all.items()) files[key] = zarr_text_of(json);
  files[".zmetadata"] = zarr_text_of({{"zarr_consolidated_format", 1}, {"metadata", all}});
  return files;
}

std::map<std::string, std::string> zarr_v3_metadata(const GridLayout& layout) {
  std::map<std::string, std::string> files;
  Json all = Json::object();
  for (const GridVariable& variable : layout.variables) {
    all[variable.name] = zarr_v3_array(layout, variable);
    files[variable.name + "/zarr.json"] = zarr_text_of(all[variable.name]);
  }
  Json root{{"zarr_format", 3}, {"node_type", "group"}};
  root["attributes"] = zarr_attributes_of(layout.attributes);
  root["consolidated_metadata"] = {{"kind", "inline"}, {"must_understand", false}, {"metadata", all}};
  files["zarr.json"] = zarr_text_of(root);
  return files;
}

}  // namespace

std::map<std::string, std::string> zarr_metadata(const GridLayout& layout) {
  return layout.zarr_version == 3 ? zarr_v3_metadata(layout) : zarr_v2_metadata(layout);
}

std::string zarr_chunk_key(const GridLayout& layout, const GridVariable& variable,
                           const std::vector<int64_t>& position) {
  if (layout.zarr_version == 3) {
    return fmt::format("{}/c{}{}", variable.name, position.empty() ? "" : "/", fmt::join(position, "/"));
  }
  return fmt::format("{}/{}", variable.name, position.empty() ? "0" : fmt::format("{}", fmt::join(position, ".")));
}

}  // namespace convssm::io
