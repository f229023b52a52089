// A box of an array is put together from the chunks that it touches, row by row, where a row is what lies together in both.
#include "convssm/io/zarr.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "convssm/base/error.h"
#include "convssm/io/chunk_overlap.h"
#include "convssm/io/zarr_chunks.h"
#include "convssm/io/zarr_metadata.h"

namespace convssm::io {
namespace {

constexpr const char* name_of_root = "data";

std::string parent_of(const std::string& folder) {
  const size_t slash = folder.rfind('/');
  return slash == folder.npos ? "" : folder.substr(0, slash);
}

class ZarrFile : public GridFile {
 public:
  ZarrFile(const std::string& path, std::unique_ptr<ZarrChunks> chunks, ZarrContent content)
      : GridFile(path, content.version == 3 ? "Zarr v3" : "Zarr v2"),
        chunks_(std::move(chunks)),
        arrays_(std::move(content.arrays)) {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      numbers_.emplace(arrays_[i].folder.empty() ? name_of_root : arrays_[i].folder, i);
    }
    std::vector<GridVariable> variables;
    for (const auto& [name, number] : numbers_) variables.push_back(describe(name, arrays_[number]));
    set_content(std::move(variables), std::move(content.attributes));
  }

 private:
  GridVariable describe(const std::string& name, const ZarrArray& array) const {
    GridVariable variable{.name = name, .dtype = array.dtype, .shape = array.shape, .attributes = array.attributes};
    for (size_t d = 0; d < array.shape.size(); ++d) {
      variable.chunks.push_back(std::clamp<int64_t>(array.chunks[d], 1, std::max<int64_t>(array.shape[d], 1)));
      const bool named = d < array.dimensions.size() && !array.dimensions[d].empty();
      variable.dimensions.push_back(named ? dimension(array, d) : fmt::format("{}_dim_{}", name, d));
    }
    return variable;
  }

  // A dimension belongs to the nearest group around the array that has its coordinates, else to the array's own.
  std::string dimension(const ZarrArray& array, size_t d) const {
    const std::string own = parent_of(array.folder);
    for (std::string group = own;; group = parent_of(group)) {
      const std::string name = zarr_key(group, array.dimensions[d]);
      const auto at = numbers_.find(name);
      if (at != numbers_.end() && arrays_[at->second].shape == std::vector<int64_t>{array.shape[d]}) return name;
      if (group.empty()) return zarr_key(own, array.dimensions[d]);
    }
  }

  void fetch(const GridVariable& variable, std::span<const int64_t> first, Array& out) const override {
    const auto at = numbers_.find(variable.name);
    const ZarrArray& array = arrays_[at->second];
    if (!array.refusal.empty()) fail(ErrorKind::data, "{}: '{}' {}", path(), variable.name, array.refusal);
    const std::vector<int64_t>&chunks = array.chunks, &count = out.shape();
    std::vector<int64_t> begin, position;
    for (size_t d = 0; d < chunks.size(); ++d) begin.push_back(first[d] / chunks[d]);
    position = begin;
    for (;;) {
      copy_chunk(array, at->second, position, first, out);
      size_t d = chunks.size();
      while (d > 0 && ++position[d - 1] > (first[d - 1] + count[d - 1] - 1) / chunks[d - 1]) {
        position[d - 1] = begin[d - 1];
        --d;
      }
      if (d == 0) return;
    }
  }

  void copy_chunk(const ZarrArray& array, size_t number, std::span<const int64_t> position,
                  std::span<const int64_t> first, Array& out) const {
    const ChunkOverlap part = chunk_overlap(first, out.shape(), array.chunks, position);
    const std::optional<Array> chunk = chunks_->read(array, number, position);
    const auto item = static_cast<int64_t>(dtype_size(array.dtype));
    std::byte* to = out.bytes().data();
    if (chunk) {
      const std::byte* from = chunk->bytes().data();
      for_each_row(part, out.shape(), array.chunks, [&](int64_t in_box, int64_t in_chunk, int64_t length) {
        std::memcpy(to + in_box * item, from + in_chunk * item, static_cast<size_t>(length * item));
      });
    } else {
      const bool one_byte = std::ranges::count(array.fill, array.fill[0]) == item;
      for_each_row(part, out.shape(), part.lengths, [&](int64_t in_box, int64_t, int64_t length) {
        std::byte* row = to + in_box * item;
        if (one_byte) std::memset(row, std::to_integer<int>(array.fill[0]), static_cast<size_t>(length * item));
        for (int64_t i = 0; !one_byte && i < length; ++i) std::ranges::copy(array.fill, row + i * item);
      });
    }
  }

  std::unique_ptr<ZarrChunks> chunks_;
  std::vector<ZarrArray> arrays_;
  std::map<std::string, size_t> numbers_;  // in arrays_, by name
};

}  // namespace

std::unique_ptr<GridFile> open_zarr(const std::string& path) {
  auto chunks = std::make_unique<ZarrChunks>(path);
  ZarrContent content = list_zarr(chunks->store());
  return std::make_unique<ZarrFile>(path, std::move(chunks), std::move(content));
}

}  // namespace convssm::io
