// Finds the arrays of a store. Consolidated metadata is one file with all of them; without it every folder is looked into. Either way
// the names become keys of files, so they are checked to be names.
#include <algorithm>

#include "convssm/io/text.h"
#include "convssm/io/zarr_metadata.h"

namespace convssm::io {
namespace {

using Json = nlohmann::json;

constexpr int most_levels = 32;
constexpr size_t most_nodes = 100'000;

std::optional<Json> read_json(const ZarrStore& store, const std::string& folder, const char* name) {
  const std::string key = zarr_key(folder, name);
  const auto text = store.text(key);
  return text ? std::optional(parse_zarr_json(*text, {store.file(key), ""})) : std::nullopt;
}

void keep(std::optional<ZarrArray> array, ZarrContent& content) {
  if (array) content.arrays.push_back(std::move(*array));
}

void check_key(const ZarrPlace& place, const std::string& key) {
  if (!key.empty() && !is_zarr_key(key)) place.fail("{} is not the name of an array or group", in_quotes(key));
}

// Whether a zarr.json is that of an array, which is kept.
bool take_node_v3(const ZarrPlace& place, const Json& node, ZarrContent& content) {
  const Json* version = zarr_member(node, "zarr_format");
  if (version == nullptr || *version != 3) place.fail("'zarr_format' of zarr.json must be 3");
  const std::string kind = zarr_text(place, node, "node_type");
  if (kind != "array" && kind != "group") place.fail("'node_type' must be array or group, found {}", in_quotes(kind));
  if (kind == "array") keep(parse_zarr_v3(place, node), content);
  return kind == "array";
}

class Walk {
 public:
  Walk(const ZarrStore& store, ZarrContent& content) : store_(store), content_(content) {}

  void enter(const std::string& folder, int level) {
    const ZarrPlace place{store_.path(), ""};
    check_key(place, folder);
    if (level > most_levels) place.fail("groups are nested more than {} deep", most_levels);
    if (++nodes_ > most_nodes) place.fail("more than {} arrays and groups", most_nodes);
    const bool group = content_.version == 3 ? take_v3(folder) : take_v2(folder);
    if (!group) return;
    for (const std::string& name : store_.folders(folder)) enter(zarr_key(folder, name), level + 1);
  }

 private:
  // Both say whether it is a group.
  bool take_v2(const std::string& folder) {
    if (const auto array = read_json(store_, folder, ".zarray")) {
      const auto attributes = read_json(store_, folder, ".zattrs");
      keep(parse_zarr_v2({store_.file(zarr_key(folder, ".zarray")), folder}, *array,
                         attributes.value_or(Json::object())),
           content_);
      return false;
    }
    return read_json(store_, folder, ".zgroup").has_value();
  }

  bool take_v3(const std::string& folder) {
    const auto node = read_json(store_, folder, "zarr.json");
    return node && !take_node_v3({store_.file(zarr_key(folder, "zarr.json")), folder}, *node, content_);
  }

  const ZarrStore& store_;
  ZarrContent& content_;
  size_t nodes_ = 0;
};

// {"metadata": {"rain/.zarray": {...}, "rain/.zattrs": {...}, ".zgroup": {...}}}
void take_consolidated_v2(const ZarrPlace& place, const Json& json, ZarrContent& content) {
  const Json& metadata = zarr_object(place, json, "metadata");
  const Json none = Json::object();
  const auto attributes_of = [&](const std::string& folder) -> const Json& {
    const Json* attributes = zarr_member(metadata, zarr_key(folder, ".zattrs").c_str());
    if (attributes != nullptr && !attributes->is_object())
      place.fail("the attributes of {} are no object", in_quotes(folder));
    return attributes ? *attributes : none;
  };
  for (const auto& [key, value] : metadata.items()) {
    const size_t slash = key.rfind('/');
    if (key.substr(slash == key.npos ? 0 : slash + 1) != ".zarray") continue;
    const ZarrPlace at{place.file, slash == key.npos ? "" : key.substr(0, slash)};
    check_key(place, key);
    if (!value.is_object()) at.fail("the metadata must be a JSON object");
    keep(parse_zarr_v2(at, value, attributes_of(at.folder)), content);
  }
  content.attributes = zarr_attributes(attributes_of(""));
}

// {"consolidated_metadata": {"kind": "inline", "metadata": {"rain": {...}}}}; null in a store that has none.
bool take_consolidated_v3(const ZarrPlace& place, const Json& root, ZarrContent& content) {
  const Json* consolidated = zarr_member(root, "consolidated_metadata");
  if (consolidated == nullptr || consolidated->is_null()) return false;
  if (!consolidated->is_object()) place.fail("expected an object as 'consolidated_metadata'");
  const Json* kind = zarr_member(*consolidated, "kind");
  if (kind != nullptr && *kind != "inline") return false;
  for (const auto& [key, node] : zarr_object(place, *consolidated, "metadata").items()) {
    check_key(place, key);
    const ZarrPlace at{place.file, key};
    if (!node.is_object()) at.fail("the metadata must be a JSON object");
    take_node_v3(at, node, content);
  }
  return true;
}

}  // namespace

void check_zarr_chunks(const ZarrPlace& place, ZarrArray& array) {
  bool fits = array.chunks.size() == array.shape.size();
  for (size_t d = 0; fits && d < array.shape.size(); ++d) {
    if (array.shape[d] == 0) array.chunks[d] = std::max<int64_t>(array.chunks[d], 1);
    fits = array.chunks[d] > 0;
  }
  if (!fits) place.fail("an array of {} has no chunks of {}", shape_text(array.shape), shape_text(array.chunks));
}

ZarrContent list_zarr(const ZarrStore& store) {
  ZarrContent content;
  if (const auto root = read_json(store, "", "zarr.json")) {
    content.version = 3;
    const ZarrPlace place{store.file("zarr.json"), ""};
    if (zarr_member(*root, "attributes") != nullptr) {
      content.attributes = zarr_attributes(zarr_object(place, *root, "attributes"));
    }
    if (!take_consolidated_v3(place, *root, content)) Walk(store, content).enter("", 0);
    return content;
  }
  if (const auto consolidated = read_json(store, "", ".zmetadata")) {
    take_consolidated_v2({store.file(".zmetadata"), ""}, *consolidated, content);
    return content;
  }
  if (const auto attributes = read_json(store, "", ".zattrs")) content.attributes = zarr_attributes(*attributes);
  if (!store.open(".zgroup") && !store.open(".zarray")) {
    fail(ErrorKind::data, "{}: no Zarr store: it has none of zarr.json, .zmetadata, .zgroup and .zarray", store.path());
  }
  Walk(store, content).enter("", 0);
  return content;
}

}  // namespace convssm::io
