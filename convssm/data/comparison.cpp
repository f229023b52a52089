#include "convssm/data/comparison.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "convssm/data/picture.h"
#include "convssm/io/gif.h"

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
  const int64_t scale = friendly_scale(clips.truth.at(0).size(-1));
  std::unique_ptr<io::GifWriter> gif;
  for (int64_t k = 0; k < clips.truth[0].size(0); ++k) {
    std::vector<std::vector<io::Image>> rows(2);
    for (size_t i = 0; i < std::min(count, clips.truth.size()); ++i) {
      rows[0].push_back(picture(clips.truth[i][k], scale));
      rows[1].push_back(picture(clips.forecast[i][k], scale));
    }
    const io::Image frame = table_picture(rows);
    if (!gif) {
      const io::FrameFormat format{.width = frame.width, .height = frame.height, .channels = frame.channels};
      gif = std::make_unique<io::GifWriter>(path, format);
    }
    gif->write(frame.pixels);
  }
  gif->close();
}

}  // namespace convssm::data
