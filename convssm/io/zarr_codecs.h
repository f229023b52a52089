// How a chunk of a Zarr array becomes its elements: stages that are undone one after another, each with a size that is known from
// the metadata before a chunk is read. What a chunk says about its own size is compared with it and never believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm::io {

enum class ZarrCodec { zlib, gzip, zstd, blosc, lz4, crc32c, shuffle, swap, delta, scale_offset, transpose };

struct ZarrStage {
  ZarrCodec codec;
  uint64_t size = 0;                              // bytes after it; of crc32c and shuffle what they are given says it
  size_t item = 1;                                // bytes of an element: shuffle, swap, transpose
  DType from = DType::u8, to = DType::u8;         // elements before and after it: delta, scale_offset
  double scale = 1, offset = 0;                   // scale_offset: value / scale + offset
  std::vector<int64_t> shape = {}, strides = {};  // after transpose, and in elements of what it is given
};

struct ZarrCodecs {
  std::vector<ZarrStage> stages = {};  // in the order of decoding
  uint64_t decoded_size = 0;
  uint64_t most_memory = 0;  // bytes of the largest array on the way
  bool compressed = false;
  uint64_t stored_size = 0;  // of a chunk that is not compressed
};

// Bytes without a meaning yet.
Array byte_array(uint64_t size);

// The elements of a chunk in C order and in the byte order of this machine; `name` is that of its file. FormatError if it is damaged.
Array decode_zarr_chunk(const ZarrCodecs& codecs, const std::string& name, Array bytes);

// The compressors alone, into all of `out`.
void decompress_zarr(ZarrCodec codec, const std::string& name, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace convssm::io
