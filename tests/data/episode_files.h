// Episodes as people have them, for the tests: videos, folders of frames and tables beside arrays.
#pragma once

#include <filesystem>
#include <string>

#include "convssm/io/png.h"
#include "convssm/io/video_writer.h"
#include "folder_files.h"

namespace convssm::data {

class EpisodeTest : public FolderTest {
 protected:
  // u8 [T,H,W,C]
  void video(const std::string& name, const at::Tensor& frames) {
    folder.write(name, "");
    const auto writer = io::open_video(
        folder.path(name),
        {.frames = frames.size(0), .width = frames.size(2), .height = frames.size(1), .channels = frames.size(3)});
    for (int64_t t = 0; t < frames.size(0); ++t) {
      const at::Tensor frame = frames[t].contiguous();
      writer->write({frame.data_ptr<uint8_t>(), static_cast<size_t>(frame.numel())});
    }
    writer->close();
  }

  // frame0.png, frame1.png, ...
  void pictures(const std::string& name, const at::Tensor& frames) {
    for (int64_t t = 0; t < frames.size(0); ++t) {
      const at::Tensor frame = frames[t].contiguous();
      const uint8_t* from = frame.data_ptr<uint8_t>();
      const std::string path = name + "/frame" + std::to_string(t) + ".png";
      folder.write(path, "");
      io::write_png(folder.path(path), {frame.size(1), frame.size(0), frame.size(2), {from, from + frame.numel()}});
    }
  }

  // All actions of training clip `index`.
  at::Tensor actions_of(const Dataset& dataset, uint64_t index = 0) {
    const int64_t frames = dataset.length(Split::train, index);
    return dataset.part(Split::train, index, 0, frames).actions[0];
  }

  json with(const json& more) const {
    json options = all_train;
    options.update(more);
    return options;
  }
};

inline at::Tensor whole(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

}  // namespace convssm::data
