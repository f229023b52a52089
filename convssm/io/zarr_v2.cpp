// Arrays of Zarr version 2: .zarray, and .zattrs with the names of dimensions that xarray keeps there.
#include <algorithm>
#include <string_view>

#include "convssm/io/text.h"
#include "convssm/io/zarr_codec_plan.h"
#include "convssm/io/zarr_metadata.h"

namespace convssm::io {
namespace {

using Json = nlohmann::json;

constexpr const char* dimensions_key = "_ARRAY_DIMENSIONS";

// A codec of numcodecs: its name is one of its options.
void add_codec(const ZarrPlace& place, const Json& codec, ZarrCodecPlan& plan) {
  if (!codec.is_object()) place.fail("expected an object as codec");
  plan.add(zarr_text(place, codec, "id"), codec);
}

ZarrCodecs parse_codecs(const ZarrPlace& place, const Json& json, const ZarrType& type, ZarrArray& array) {
  ZarrCodecPlan plan(place, array.dtype, type.big_endian, array.chunks);
  const std::string order = zarr_text(place, json, "order");
  if (order != "C" && order != "F") place.fail("'order' must be C or F, found {}", in_quotes(order));
  if (order == "F") {
    std::vector<int64_t> axes(array.chunks.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(axes.size() - 1 - i);
    plan.transpose(axes);
  }
  const Json* filters = zarr_member(json, "filters");
  if (filters != nullptr && !filters->is_null()) {
    if (!filters->is_array()) place.fail("expected a list as 'filters'");
    for (const Json& filter : *filters) add_codec(place, filter, plan);
  }
  const Json* compressor = zarr_member(json, "compressor");
  if (compressor != nullptr && !compressor->is_null()) add_codec(place, *compressor, plan);
  array.refusal = plan.refusal();
  return plan.finish();
}

// As xarray takes them: what fills chunks that are not there also stands for values that are not there.
void set_fill(const ZarrPlace& place, const Json& json, ZarrArray& array) {
  const Json* fill = zarr_member(json, "fill_value");
  array.fill.assign(dtype_size(array.dtype), std::byte{0});
  if (fill == nullptr || fill->is_null()) return;
  const auto element = zarr_element(array.dtype, *fill);
  const auto number = zarr_number(*fill);
  if (!element || !number) place.fail("'fill_value' is not a number that {} can hold", dtype_name(array.dtype));
  array.fill = *element;
  array.attributes.try_emplace("_FillValue", GridAttribute{.numbers = {*number}});
}

void set_dimensions(const Json& attributes, ZarrArray& array) {
  array.attributes.erase(dimensions_key);
  const Json* names = zarr_member(attributes, dimensions_key);
  if (names == nullptr || !names->is_array() || names->size() != array.shape.size()) return;
  for (const Json& name : *names) array.dimensions.push_back(name.is_string() ? name.get<std::string>() : "");
}

}  // namespace

ZarrType parse_zarr_type(const ZarrPlace& place, const std::string& text) {
  constexpr std::string_view orders = "<>|=", others = "cmMSUVO";
  constexpr std::array<std::pair<std::string_view, DType>, 12> types = {{{"b1", DType::bool8},
                                                                         {"u1", DType::u8},
                                                                         {"i1", DType::i8},
                                                                         {"u2", DType::u16},
                                                                         {"i2", DType::i16},
                                                                         {"u4", DType::u32},
                                                                         {"i4", DType::i32},
                                                                         {"u8", DType::u64},
                                                                         {"i8", DType::i64},
                                                                         {"f2", DType::f16},
                                                                         {"f4", DType::f32},
                                                                         {"f8", DType::f64}}};
  const bool has_order = !text.empty() && orders.find(text[0]) != orders.npos;
  const std::string_view type = std::string_view(text).substr(has_order ? 1 : 0);
  const bool big_endian = text.starts_with('>');
  for (const auto& [name, dtype] : types) {
    if (name == type) return {dtype, big_endian};
  }
  const bool other = type.size() > 1 && others.find(type[0]) != others.npos;
  if (other || type == "O" || type == "f12" || type == "f16") return {std::nullopt, big_endian};
  place.fail("unknown type {}", in_quotes(text));
}

std::optional<ZarrArray> parse_zarr_v2(const ZarrPlace& place, const Json& json, const Json& attributes) {
  const Json* version = zarr_member(json, "zarr_format");
  if (version == nullptr || *version != 2) place.fail("'zarr_format' of .zarray must be 2");
  const Json* dtype = zarr_member(json, "dtype");
  if (dtype != nullptr && dtype->is_array()) return std::nullopt;  // a structure
  const ZarrType type = parse_zarr_type(place, zarr_text(place, json, "dtype"));
  if (!type.dtype) return std::nullopt;
  ZarrArray array{.folder = place.folder, .dtype = *type.dtype};
  array.shape = zarr_lengths(place, json, "shape");
  array.chunks = zarr_lengths(place, json, "chunks");
  check_zarr_chunks(place, array);
  if (zarr_member(json, "dimension_separator") != nullptr) {
    const std::string separator = zarr_text(place, json, "dimension_separator");
    if (separator != "." && separator != "/") {
      place.fail("'dimension_separator' must be . or /, found {}", in_quotes(separator));
    }
    array.separator = separator[0];
  }
  array.codecs = parse_codecs(place, json, type, array);
  array.attributes = zarr_attributes(attributes);
  set_fill(place, json, array);
  set_dimensions(attributes, array);
  return array;
}

}  // namespace convssm::io
