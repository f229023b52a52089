// Arrays of Zarr version 3: zarr.json. Its extension points (types, grids, codecs) have names, and one with an unknown name makes an
// array that cannot be read, not a store that cannot be opened.
#include <algorithm>
#include <array>

#include "convssm/io/text.h"
#include "convssm/io/zarr_codec_plan.h"
#include "convssm/io/zarr_metadata.h"

namespace convssm::io {
namespace {

using Json = nlohmann::json;

constexpr std::array known_members = {"zarr_format",
                                      "node_type",
                                      "shape",
                                      "data_type",
                                      "chunk_grid",
                                      "fill_value",
                                      "codecs",
                                      "attributes",
                                      "chunk_key_encoding",
                                      "dimension_names",
                                      "storage_transformers",
                                      "consolidated_metadata"};

std::optional<DType> dtype_of_name(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, DType>, 13> types = {{{"bool", DType::bool8},
                                                                         {"uint8", DType::u8},
                                                                         {"int8", DType::i8},
                                                                         {"uint16", DType::u16},
                                                                         {"int16", DType::i16},
                                                                         {"uint32", DType::u32},
                                                                         {"int32", DType::i32},
                                                                         {"uint64", DType::u64},
                                                                         {"int64", DType::i64},
                                                                         {"float16", DType::f16},
                                                                         {"bfloat16", DType::bf16},
                                                                         {"float32", DType::f32},
                                                                         {"float64", DType::f64}}};
  for (const auto& [known, dtype] : types) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

bool is_big_endian(const ZarrPlace& place, const Json& configuration, DType dtype) {
  if (zarr_member(configuration, "endian") == nullptr) {
    if (dtype_size(dtype) > 1) place.fail("the codec 'bytes' must say the byte order as 'endian'");
    return false;
  }
  const std::string endian = zarr_text(place, configuration, "endian");
  if (endian != "little" && endian != "big") place.fail("'endian' must be little or big, found {}", in_quotes(endian));
  return endian == "big";
}

const Json& codec_list(const ZarrPlace& place, const Json& object, const char* key) {
  constexpr size_t most_codecs = 32;
  const Json* list = zarr_member(object, key);
  if (list == nullptr || !list->is_array()) place.fail("expected a list of codecs as '{}'", key);
  if (list->size() > most_codecs) place.fail("more than {} codecs", most_codecs);
  return *list;
}

// Codecs of chunks that are no shards; the first refusal, or "", goes to `refusal`.
ZarrCodecs parse_codecs(const ZarrPlace& place, const Json& list, DType dtype, const std::vector<int64_t>& chunks,
                        std::string& refusal) {
  ZarrCodecPlan plan(place, dtype, false, chunks);
  for (const Json& entry : list) {
    auto [name, configuration] = zarr_named(place, entry, "codec");
    constexpr std::string_view numcodecs = "numcodecs.";
    if (name == "transpose") {
      plan.transpose(zarr_lengths(place, configuration, "order"));
    } else if (name == "bytes") {
      plan.to_bytes(is_big_endian(place, configuration, dtype));
    } else if (name == "sharding_indexed") {
      plan.refuse("has shards inside of shards or behind other codecs, which are not read here");
    } else if (name.starts_with(numcodecs)) {
      plan.add(name.substr(numcodecs.size()), configuration);
    } else {
      plan.add(name, configuration);
    }
  }
  if (!plan.is_bytes() && plan.refusal().empty()) place.fail("its codecs do not end in bytes");
  if (refusal.empty()) refusal = plan.refusal();
  return plan.finish();
}

// The chunks inside of a shard become those of the array.
void parse_shards(const ZarrPlace& place, const Json& configuration, ZarrArray& array) {
  ZarrShards& shards = array.shards.emplace();
  const std::vector<int64_t> inner = zarr_lengths(place, configuration, "chunk_shape");
  bool fits = inner.size() == array.chunks.size();
  for (size_t d = 0; fits && d < inner.size(); ++d) {
    fits = inner[d] > 0 && array.chunks[d] % inner[d] == 0;
    if (fits) shards.per_shard.push_back(array.chunks[d] / inner[d]);
  }
  if (!fits) {
    place.fail("shards of {} are not made of chunks of {}", shape_text(array.chunks), shape_text(inner));
  }
  array.chunks = inner;
  if (zarr_member(configuration, "index_location") != nullptr) {
    const std::string location = zarr_text(place, configuration, "index_location");
    if (location != "start" && location != "end") {
      place.fail("'index_location' must be start or end, found {}", in_quotes(location));
    }
    shards.index_at_end = location == "end";
  }
  array.codecs = parse_codecs(place, codec_list(place, configuration, "codecs"), array.dtype, inner, array.refusal);
  std::vector<int64_t> entries = shards.per_shard;
  entries.push_back(2);
  shards.index =
      parse_codecs(place, codec_list(place, configuration, "index_codecs"), DType::u64, entries, array.refusal);
  if (shards.index.compressed && array.refusal.empty()) array.refusal = "has compressed indexes of shards";
}

void parse_all_codecs(const ZarrPlace& place, const Json& json, ZarrArray& array) {
  const Json& list = codec_list(place, json, "codecs");
  const auto first = list.empty() ? ZarrNamed{} : zarr_named(place, list[0], "codec");
  if (list.size() == 1 && first.name == "sharding_indexed")
    parse_shards(place, first.configuration, array);
  else
    array.codecs = parse_codecs(place, list, array.dtype, array.chunks, array.refusal);
}

void parse_grid(const ZarrPlace& place, const Json& json, ZarrArray& array) {
  const ZarrNamed grid = zarr_named(place, zarr_object(place, json, "chunk_grid"), "chunk_grid");
  const bool regular = grid.name == "regular";
  if (!regular) array.refusal = fmt::format("has the chunk grid {}, which is not read here", in_quotes(grid.name));
  array.chunks = regular ? zarr_lengths(place, grid.configuration, "chunk_shape") : array.shape;
  check_zarr_chunks(place, array);
}

void parse_keys(const ZarrPlace& place, const Json& json, ZarrArray& array) {
  const Json* member = zarr_member(json, "chunk_key_encoding");
  if (member == nullptr) place.fail("'chunk_key_encoding' is missing");
  const auto [name, configuration] = zarr_named(place, *member, "chunk_key_encoding");
  if (name != "default" && name != "v2") {
    if (array.refusal.empty()) array.refusal = "has names of chunks of an unknown kind, " + in_quotes(name);
    return;
  }
  array.chunk_prefix = name == "default" ? "c" : "";
  array.separator = name == "default" ? '/' : '.';
  if (zarr_member(configuration, "separator") == nullptr) return;
  const std::string separator = zarr_text(place, configuration, "separator");
  if (separator != "." && separator != "/") place.fail("'separator' must be . or /, found {}", in_quotes(separator));
  array.separator = separator[0];
}

// Members that are not of the specification may change what the others mean, unless they say that they do not.
void refuse_extensions(const Json& json, ZarrArray& array) {
  for (const auto& [key, value] : json.items()) {
    const bool known = std::ranges::find(known_members, std::string_view(key)) != known_members.end();
    const Json* must = value.is_object() ? zarr_member(value, "must_understand") : nullptr;
    const bool transforms = key == "storage_transformers" && !value.empty();
    if ((known && !transforms) || (must != nullptr && *must == false)) continue;
    if (array.refusal.empty())
      array.refusal = fmt::format("has the extension {}, which is not known here", in_quotes(key));
  }
}

void set_fill(const ZarrPlace& place, const Json& json, ZarrArray& array) {
  const Json* fill = zarr_member(json, "fill_value");
  array.fill.assign(dtype_size(array.dtype), std::byte{0});
  if (fill == nullptr || fill->is_null()) return;
  const auto element = zarr_element(array.dtype, *fill);
  if (!element) place.fail("'fill_value' is not a number that {} can hold", dtype_name(array.dtype));
  array.fill = *element;
}

void set_dimensions(const ZarrPlace& place, const Json& json, ZarrArray& array) {
  const Json* names = zarr_member(json, "dimension_names");
  if (names == nullptr || names->is_null()) return;
  if (!names->is_array() || names->size() != array.shape.size()) {
    place.fail("expected {} names as 'dimension_names'", array.shape.size());
  }
  for (const Json& name : *names) array.dimensions.push_back(name.is_string() ? name.get<std::string>() : "");
}

// Numbers of 6 bits, the padding "=" at the end; nothing if it is none.
std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t length = std::min(text.find('='), text.size());
  if (text.size() % 4 != 0 || text.size() - length > 2) return std::nullopt;
  std::vector<std::byte> bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < length; ++i) {
    const size_t digit = digits.find(text[i]);
    if (digit == digits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 > 0) bytes.push_back(static_cast<std::byte>(bits >> (6 - 2 * (i % 4))));
  }
  return bytes;
}

// xarray writes the value that stands for missing ones of an array of floats as the base64 text of a little-endian double.
void decode_missing_value(ZarrArray& array) {
  const auto at = array.attributes.find("_FillValue");
  if (at == array.attributes.end() || !at->second.is_text() || !is_float(array.dtype)) return;
  const auto bytes = from_base64(at->second.text);
  if (bytes && bytes->size() == sizeof(double)) at->second = {.numbers = {load<double>(bytes->data())}};
  if (bytes && bytes->size() == sizeof(float)) at->second = {.numbers = {load<float>(bytes->data())}};
}

}  // namespace

std::optional<ZarrArray> parse_zarr_v3(const ZarrPlace& place, const Json& json) {
  const Json* type = zarr_member(json, "data_type");
  if (type == nullptr) place.fail("'data_type' is missing");
  const auto dtype = dtype_of_name(zarr_named(place, *type, "data_type").name);
  if (!dtype) return std::nullopt;
  ZarrArray array{.folder = place.folder, .dtype = *dtype};
  array.shape = zarr_lengths(place, json, "shape");
  parse_grid(place, json, array);
  parse_keys(place, json, array);
  parse_all_codecs(place, json, array);
  refuse_extensions(json, array);
  if (zarr_member(json, "attributes") != nullptr) {
    array.attributes = zarr_attributes(zarr_object(place, json, "attributes"));
  }
  set_fill(place, json, array);
  set_dimensions(place, json, array);
  decode_missing_value(array);
  return array;
}

}  // namespace convssm::io
