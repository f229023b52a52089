// What the metadata of a Zarr store says about its arrays, in the same terms for versions 2 and 3 of the format. Metadata that no
// array can have is a FormatError; an array that is packed in a way that is not known here is described all the same, and says why it
// cannot be read when it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convssm/io/grid_file.h"
#include "convssm/io/zarr_codecs.h"
#include "convssm/io/zarr_json.h"
#include "convssm/io/zarr_store.h"

namespace convssm::io {

// Chunks in one file with an index of where each of them lies, of two numbers of 64 bits per chunk.
struct ZarrShards {
  std::vector<int64_t> per_shard = {};  // chunks along each dimension
  bool index_at_end = true;
  ZarrCodecs index = {};
};

struct ZarrArray {
  std::string folder = {};  // its key
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {}, chunks = {};  // chunks: what is decoded at once; at least 1
  std::vector<std::byte> fill = {};              // an element of chunks that are not there
  std::string chunk_prefix = {};                 // "c" before the numbers of a chunk, or nothing
  char separator = '.';
  ZarrCodecs codecs = {};
  std::optional<ZarrShards> shards = {};
  std::string refusal = {};                  // why it cannot be read, or nothing
  std::vector<std::string> dimensions = {};  // as many as of the shape, "" for one without a name; or none
  GridAttributes attributes = {};
};

// Nothing if the elements are not real numbers.
std::optional<ZarrArray> parse_zarr_v2(const ZarrPlace& place, const nlohmann::json& array,
                                       const nlohmann::json& attributes);
std::optional<ZarrArray> parse_zarr_v3(const ZarrPlace& place, const nlohmann::json& array);

// "<f4": a type of NumPy. FormatError if it is none.
struct ZarrType {
  std::optional<DType> dtype;  // nothing if it is not one of real numbers
  bool big_endian = false;
};
ZarrType parse_zarr_type(const ZarrPlace& place, const std::string& text);

// For both versions: checks that chunks of this shape can be; lengths of 0 along an empty dimension become 1.
void check_zarr_chunks(const ZarrPlace& place, ZarrArray& array);

struct ZarrContent {
  int version = 2;
  std::vector<ZarrArray> arrays = {};
  GridAttributes attributes = {};
};

// The arrays of a store: from its consolidated metadata if it has such, else from a walk through its folders.
ZarrContent list_zarr(const ZarrStore& store);

}  // namespace convssm::io
