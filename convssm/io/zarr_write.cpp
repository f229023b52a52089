// A file for each chunk, written once, in a folder beside the final one that takes its name at the end (base/staged_folder.h). The
// metadata is written then too, when it is known how many records came. What the chunks at an edge hold beyond the array is its
// missing value, or zero.
#include "convssm/io/zarr_write.h"

#include <blosc.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "convssm/base/error.h"
#include "convssm/base/folder.h"
#include "convssm/base/staged_folder.h"
#include "convssm/io/chunk_overlap.h"
#include "convssm/io/file_kind.h"
#include "convssm/io/grid_layout.h"
#include "convssm/io/zarr_codecs.h"
#include "convssm/io/zarr_metadata_write.h"

namespace convssm::io {
namespace {

namespace fs = std::filesystem;

Array packed_by_blosc(const std::string& path, const Array& chunk) {
  Array out = byte_array(chunk.byte_count() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(zarr_pack_level, BLOSC_SHUFFLE, dtype_size(chunk.dtype()), chunk.byte_count(),
                                      chunk.bytes().data(), out.bytes().data(), out.byte_count(), "zstd", 0, 1);
  if (size <= 0) fail(ErrorKind::io, "cannot write '{}': blosc, or its zstd, refuses a chunk ({})", path, size);
  Array exact = byte_array(static_cast<uint64_t>(size));
  std::memcpy(exact.bytes().data(), out.bytes().data(), exact.byte_count());
  return exact;
}

class ZarrWriter : public GridWriter {
 public:
  ZarrWriter(const std::string& path, const GridLayout& layout) : GridWriter(path, layout), staged_(path) {
    for (const GridVariable& variable : layout.variables) make_folder(staged_->path(variable.name));
  }

 private:
  void put(size_t number, int64_t first, const Array& rows) override {
    const GridVariable& variable = layout().variables[number];
    std::vector<int64_t> begin(variable.shape.size(), 0);
    if (!begin.empty()) begin[axis_of(variable)] = first;
    std::vector<int64_t> position = begin;
    for (size_t d = 0; d < position.size(); ++d) position[d] /= variable.chunks[d];
    const std::vector<int64_t> start = position;
    for (;;) {
      write_chunk(variable, position, begin, rows);
      size_t d = position.size();
      while (d > 0 && ++position[d - 1] > (begin[d - 1] + rows.shape()[d - 1] - 1) / variable.chunks[d - 1]) {
        position[d - 1] = start[d - 1];
        --d;
      }
      if (d == 0) return;
    }
  }

  void write_chunk(const GridVariable& variable, const std::vector<int64_t>& position,
                   const std::vector<int64_t>& first, const Array& rows) {
    const ChunkOverlap part = chunk_overlap(first, rows.shape(), variable.chunks, position);
    Array chunk = rows;  // shared, if it is the chunk
    if (rows.shape() != variable.chunks) {
      chunk = Array(variable.dtype, variable.chunks);
      if (part.lengths != variable.chunks) fill(variable, chunk);
      const auto item = static_cast<int64_t>(dtype_size(variable.dtype));
      std::byte* to = chunk.bytes().data();
      const std::byte* from = rows.bytes().data();
      for_each_row(part, rows.shape(), variable.chunks, [&](int64_t in_box, int64_t in_chunk, int64_t length) {
        std::memcpy(to + in_chunk * item, from + in_box * item, static_cast<size_t>(length * item));
      });
    }
    if (layout().compressed) chunk = packed_by_blosc(path(), chunk);
    const std::string key = zarr_chunk_key(layout(), variable, position);
    write_file(key, chunk.bytes());
  }

  static void fill(const GridVariable& variable, Array& chunk) {
    const auto element = fill_element(variable).value_or(std::vector<std::byte>(dtype_size(variable.dtype)));
    for (uint64_t i = 0; i < chunk.element_count(); ++i) {
      std::memcpy(chunk.bytes().data() + i * element.size(), element.data(), element.size());
    }
  }

  void write_file(const std::string& key, std::span<const std::byte> bytes) {
    const std::string name = staged_->path(key);
    make_folder(fs::path(name).parent_path().string());
    std::FILE* file = std::fopen(name.c_str(), "wb");
    if (file == nullptr) fail_io(fmt::format("cannot write '{}'", path()));
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    const int reason = errno;
    if (std::fclose(file) == 0 && written) return;
    if (!written) errno = reason;
    fail_io(fmt::format("cannot write '{}'", path()));
  }

  void finish() override {
    for (const auto& [key, text] : zarr_metadata(layout())) write_file(key, std::as_bytes(std::span(text)));
    staged_->commit_whole();
    staged_.reset();
  }

  std::optional<StagedFolder> staged_;  // until the file is complete
};

}  // namespace

std::unique_ptr<GridWriter> open_zarr_writer(const std::string& path, const GridLayout& layout) {
  if (layout.zarr_version != 2 && layout.zarr_version != 3) {
    fail(ErrorKind::usage, "[open_grid_writer] the version of Zarr is 2 or 3, got {}", layout.zarr_version);
  }
  for (const GridVariable& variable : layout.variables) {
    if (variable.dtype != DType::bf16) continue;
    fail(ErrorKind::usage, "[open_grid_writer] '{}' is of bf16, which Zarr has not: write f32", variable.name);
  }
  std::error_code ignored;
  if (fs::exists(path) && !fs::is_directory(path)) {
    fail(ErrorKind::usage, "[open_grid_writer] '{}' is a file, a Zarr store is a folder", path);
  }
  if (fs::is_directory(path) && file_kind(path).name.empty() && !fs::is_empty(path, ignored)) {
    fail(ErrorKind::usage, "[open_grid_writer] the folder '{}' is no Zarr store, and is not replaced by one", path);
  }
  return std::make_unique<ZarrWriter>(path, layout);
}

}  // namespace convssm::io
