// Of a shard its index is read, then the bytes of one chunk, never the whole file.
#include "convssm/io/zarr_chunks.h"

#include "convssm/base/file_memory.h"
#include "convssm/io/source.h"

namespace convssm::io {
namespace {

constexpr uint64_t not_stored = UINT64_MAX;  // offset and size of a chunk that a shard does not have

std::string chunk_key(const ZarrArray& array, std::span<const int64_t> position) {
  std::string key = array.chunk_prefix;
  for (const int64_t index : position) {
    if (!key.empty()) key += array.separator;
    key += std::to_string(index);
  }
  return zarr_key(array.folder, key.empty() ? "0" : key);
}

Array read_bytes(const Source& source, uint64_t offset, uint64_t size) {
  require_file_memory(source.name(), "a chunk of it", size);
  Array bytes = byte_array(size);
  source.read(offset, bytes.bytes());
  return bytes;
}

void require_codecs_memory(const std::string& name, const ZarrCodecs& codecs) {
  require_file_memory(name, "a chunk of it", codecs.most_memory);
}

// The number of a chunk among all of its array.
uint64_t linear(const ZarrArray& array, std::span<const int64_t> position, std::span<const int64_t> lengths) {
  uint64_t number = 0;
  for (size_t d = 0; d < position.size(); ++d) {
    const auto count = static_cast<uint64_t>(array.shape[d] / lengths[d] + (array.shape[d] % lengths[d] != 0));
    number = number * count + static_cast<uint64_t>(position[d]);
  }
  return number;
}

}  // namespace

std::optional<Array> ZarrChunks::read(const ZarrArray& array, size_t number, std::span<const int64_t> position) const {
  return cache_.get({number, linear(array, position, array.chunks), false}, [&] {
    return array.shards ? read_part(array, number, position) : read_file(array, chunk_key(array, position));
  });
}

std::optional<Array> ZarrChunks::read_file(const ZarrArray& array, const std::string& key) const {
  const auto source = store_.open(key);
  if (!source) return std::nullopt;
  require_codecs_memory(source->name(), array.codecs);
  return decode_zarr_chunk(array.codecs, source->name(), read_bytes(*source, 0, source->size()));
}

std::optional<Array> ZarrChunks::read_part(const ZarrArray& array, size_t number,
                                           std::span<const int64_t> position) const {
  const std::vector<int64_t>& per_shard = array.shards->per_shard;
  std::vector<int64_t> shard(position.size()), lengths(position.size());
  uint64_t entry = 0;
  for (size_t d = 0; d < position.size(); ++d) {
    shard[d] = position[d] / per_shard[d];
    lengths[d] = array.chunks[d] * per_shard[d];
    entry = entry * static_cast<uint64_t>(per_shard[d]) + static_cast<uint64_t>(position[d] % per_shard[d]);
  }
  const auto source = store_.open(chunk_key(array, shard));
  if (!source) return std::nullopt;
  const auto index = cache_.get({number, linear(array, shard, lengths), true},
                                [&]() -> std::optional<Array> { return shard_index(array, *source); });
  const auto offset = load<uint64_t>(index->bytes().data() + 16 * entry);
  const auto size = load<uint64_t>(index->bytes().data() + 16 * entry + 8);
  if (offset == not_stored && size == not_stored) return std::nullopt;
  if (offset > source->size() || size > source->size() - offset) {
    source->fail(offset, "chunk {} of the shard has {} bytes from {} on, but the file has {}", entry, size, offset,
                 source->size());
  }
  require_codecs_memory(source->name(), array.codecs);
  return decode_zarr_chunk(array.codecs, source->name(), read_bytes(*source, offset, size));
}

std::optional<Array> ZarrChunks::shard_index(const ZarrArray& array, const Source& shard) const {
  const ZarrShards& shards = *array.shards;
  const uint64_t size = shards.index.stored_size;
  if (size > shard.size()) shard.fail(0, "a shard with an index of {} bytes is expected, found {}", size, shard.size());
  require_codecs_memory(shard.name(), shards.index);
  const uint64_t offset = shards.index_at_end ? shard.size() - size : 0;
  return decode_zarr_chunk(shards.index, shard.name(), read_bytes(shard, offset, size));
}

}  // namespace convssm::io
