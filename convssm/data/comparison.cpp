// A GIF is written frame by frame, so that a table of long videos needs the memory of one picture.
#include "convssm/data/comparison.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "convssm/base/spacing.h"
#include "convssm/data/picture.h"
#include "convssm/io/gif.h"
#include "convssm/ops/check.h"

namespace convssm::data {

io::Image comparison_strip(const Comparison& clips, size_t first, size_t count, int64_t frames) {
  std::vector<at::Tensor> rows;
  for (size_t i = first; i < std::min(first + count, clips.truth.size()); ++i) {
    rows.push_back(clips.truth[i].slice(0, clips.context));
    rows.push_back(clips.forecast[i].slice(0, clips.context));
  }
  return strip_picture(rows, evenly_spaced(rows.at(0).size(0), frames), friendly_scale(rows.at(0).size(-1)));
}

void save_comparison_gif(const Comparison& clips, size_t count, const std::string& path) {
  const auto some = [&](const std::vector<at::Tensor>& videos) {
    return std::vector<at::Tensor>(videos.begin(), videos.begin() + std::min(count, videos.size()));
  };
  save_table_gif({{some(clips.truth), some(clips.forecast)}, friendly_scale(clips.truth.at(0).size(-1))}, path);
}

void save_table_gif(const VideoTable& table, const std::string& path) {
  const int64_t length = table.rows.at(0).at(0).size(0);
  std::unique_ptr<io::GifWriter> gif;
  for (int64_t k = 0; k < length; ++k) {
    std::vector<std::vector<io::Image>> pictures;
    for (const auto& row : table.rows) {
      pictures.emplace_back();
      for (const at::Tensor& video : row) {
        ops::require("save_table_gif", video.size(0) == length, "videos must have the same length");
        pictures.back().push_back(picture(video[k], table.scale));
      }
    }
    io::Image frame = table_picture(pictures);
    if (table.heading) frame = stack_pictures(table.heading(k, frame.width), frame);
    if (!gif) {
      const io::VideoFormat format{.width = frame.width, .height = frame.height, .channels = frame.channels};
      gif = std::make_unique<io::GifWriter>(path, format);
    }
    gif->write(frame.pixels);
  }
  gif->close();
}

}  // namespace convssm::data
