// Boxes of an array and the chunks that it is stored in: what of a box lies in a chunk, as rows that lie together in both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace convssm::io {

// The part of a box that the chunk at `position` holds; offsets and lengths along each dimension.
struct ChunkOverlap {
  std::vector<int64_t> in_box, in_chunk, lengths;
};

inline ChunkOverlap chunk_overlap(std::span<const int64_t> first, std::span<const int64_t> count,
                                  std::span<const int64_t> chunks, std::span<const int64_t> position) {
  ChunkOverlap part;
  for (size_t d = 0; d < first.size(); ++d) {
    const int64_t start = position[d] * chunks[d], from = std::max(start, first[d]);
    const int64_t left_in_chunk = chunks[d] - (from - start), left_in_box = first[d] + count[d] - from;
    part.in_box.push_back(from - first[d]);
    part.in_chunk.push_back(from - start);
    part.lengths.push_back(std::min(left_in_chunk, left_in_box));
  }
  return part;
}

// Calls `copy` with the first element in the box, that in the chunk, and the length, of every row.
template <typename Copy>
void for_each_row(const ChunkOverlap& part, std::span<const int64_t> box, std::span<const int64_t> chunk,
                  const Copy& copy) {
  size_t rows = part.lengths.size();  // dimensions that are counted: the ones behind them lie together
  int64_t row = 1;
  for (bool together = true; rows > 0 && together; --rows) {
    row *= part.lengths[rows - 1];
    together = part.lengths[rows - 1] == box[rows - 1] && part.lengths[rows - 1] == chunk[rows - 1];
  }
  std::vector<int64_t> at(rows, 0);
  for (;;) {
    int64_t to = 0, from = 0;
    for (size_t d = 0; d < box.size(); ++d) {
      to = to * box[d] + part.in_box[d] + (d < rows ? at[d] : 0);
      from = from * chunk[d] + part.in_chunk[d] + (d < rows ? at[d] : 0);
    }
    copy(to, from, row);
    size_t d = rows;
    while (d > 0 && ++at[d - 1] == part.lengths[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace convssm::io
