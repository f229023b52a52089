// The chunks of the arrays of a Zarr store, decoded: each from a file of its own or from its part of a shard.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "convssm/io/array.h"
#include "convssm/io/zarr_cache.h"
#include "convssm/io/zarr_metadata.h"
#include "convssm/io/zarr_store.h"

namespace convssm::io {

class ZarrChunks {
 public:
  explicit ZarrChunks(std::string path) : store_(std::move(path)), cache_(most_cached) {}

  const ZarrStore& store() const { return store_; }

  // The bytes of a chunk's elements, in C order of array.chunks; nothing if it is not stored. `number` tells the arrays of the store
  // apart, `position` counts chunks along each dimension. From any thread.
  std::optional<Array> read(const ZarrArray& array, size_t number, std::span<const int64_t> position) const;

 private:
  static constexpr uint64_t most_cached = uint64_t{64} << 20;

  std::optional<Array> read_file(const ZarrArray& array, const std::string& key) const;
  std::optional<Array> read_part(const ZarrArray& array, size_t number, std::span<const int64_t> position) const;
  std::optional<Array> shard_index(const ZarrArray& array, const Source& shard) const;

  ZarrStore store_;
  mutable ZarrCache cache_;
};

}  // namespace convssm::io
