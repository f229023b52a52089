// From [-1,1] to 8 bits, and pasting of pictures; all pictures of a run, a report and a comparison are made here.
#include "convssm/data/picture.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/ops/check.h"

namespace convssm::data {
namespace {

constexpr uint8_t kGapValue = 96;

void paste(io::Image& canvas, const io::Image& tile, int64_t top, int64_t left) {
  const int64_t row_bytes = tile.width * tile.channels;
  for (int64_t y = 0; y < tile.height; ++y) {
    const auto* from = tile.pixels.data() + y * row_bytes;
    std::copy_n(from, row_bytes, canvas.pixels.data() + ((top + y) * canvas.width + left) * canvas.channels);
  }
}

}  // namespace

io::Image picture(const at::Tensor& frame, int64_t scale) {
  ops::require_dims("picture", "frame", frame, 3, "[C,H,W]");
  const at::Tensor shown = frame.size(0) == 3 ? frame : frame.slice(0, 0, 1);
  at::Tensor pixels = ((shown.cpu().to(at::kFloat).clamp(-1, 1) + 1) * 127.5f).round().to(at::kByte);
  pixels = pixels.repeat_interleave(scale, 1).repeat_interleave(scale, 2).permute({1, 2, 0}).contiguous();
  const auto* begin = pixels.data_ptr<uint8_t>();
  return {pixels.size(1), pixels.size(0), pixels.size(2), {begin, begin + pixels.numel()}};
}

io::Image table_picture(const std::vector<std::vector<io::Image>>& rows, int64_t gap) {
  ops::require("table_picture", !rows.empty() && !rows[0].empty(), "there must be at least one picture");
  const io::Image& first = rows[0][0];
  size_t columns = 0;
  for (const auto& row : rows) columns = std::max(columns, row.size());
  const auto along = [&](size_t count, int64_t size) { return static_cast<int64_t>(count) * (size + gap) - gap; };
  io::Image canvas{along(columns, first.width), along(rows.size(), first.height), first.channels, {}};
  canvas.pixels.assign(canvas.width * canvas.height * canvas.channels, kGapValue);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows[i].size(); ++j) {
      const bool same =
          rows[i][j].width == first.width && rows[i][j].height == first.height && rows[i][j].channels == first.channels;
      ops::require("table_picture", same, "pictures must have the same size");
      paste(canvas, rows[i][j], static_cast<int64_t>(i) * (first.height + gap),
            static_cast<int64_t>(j) * (first.width + gap));
    }
  }
  return canvas;
}

io::Image stack_pictures(const io::Image& above, const io::Image& below) {
  ops::require("stack_pictures", above.width == below.width && above.channels == below.channels,
               "pictures must have the same width and channels");
  io::Image stacked = above;
  stacked.height += below.height;
  stacked.pixels.insert(stacked.pixels.end(), below.pixels.begin(), below.pixels.end());
  return stacked;
}

io::Image strip_picture(const std::vector<at::Tensor>& videos, const std::vector<int64_t>& frames, int64_t scale) {
  std::vector<std::vector<io::Image>> rows;
  for (const at::Tensor& video : videos) {
    rows.emplace_back();
    for (const int64_t k : frames) rows.back().push_back(picture(video[k], scale));
  }
  return table_picture(rows);
}

int64_t friendly_scale(int64_t width) { return std::clamp<int64_t>(64 / std::max<int64_t>(width, 1), 1, 8); }

}  // namespace convssm::data
