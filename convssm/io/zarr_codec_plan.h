// Turns the codecs that the metadata of a Zarr array names, in the order of encoding, into the stages that undo them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convssm/io/zarr_codecs.h"
#include "convssm/io/zarr_json.h"

namespace convssm::io {

class ZarrCodecPlan {
 public:
  // Of chunks of this shape. In version 2 elements have a byte order from the start, in version 3 the codec "bytes" gives it.
  ZarrCodecPlan(const ZarrPlace& place, DType dtype, bool big_endian, std::vector<int64_t> shape);

  // Axis i of what is stored is axis order[i] of the chunk.
  void transpose(const std::vector<int64_t>& order);
  // From here on there are bytes, not elements.
  void to_bytes(bool big_endian);
  // A filter or compressor by its name in numcodecs; names that are not known set the refusal.
  void add(const std::string& name, const nlohmann::json& configuration);

  bool is_bytes() const { return bytes_; }
  const std::string& refusal() const { return refusal_; }
  void refuse(std::string reason);  // the first one counts

  ZarrCodecs finish();

 private:
  void add_numbers(const std::string& name, const nlohmann::json& configuration);
  void add_shuffle(const nlohmann::json& configuration);
  void add_checksum(const nlohmann::json& configuration);
  void add_compressor(ZarrCodec codec);
  uint64_t bytes_of(DType dtype) const;

  ZarrPlace place_;
  DType dtype_;
  bool big_endian_;
  std::vector<int64_t> shape_;
  bool bytes_ = false, compressed_ = false;
  uint64_t size_;  // as long as nothing is compressed
  std::string refusal_;
  ZarrCodecs codecs_;
};

}  // namespace convssm::io
