// A recording in memory: frames of a walk as an animated GIF, the model's beside the true ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "convssm/io/gif.h"
#include "convssm/io/png.h"

namespace convssm::serve {

inline constexpr int64_t kMostRecorded = 600;  // frames

class Recording {
 public:
  explicit Recording(double fps);  // Error(usage) unless fps is from 1 to 50
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // `truth` may be empty, for all frames or none. Closes itself after kMostRecorded frames.
  void add(const io::Image& seen, const io::Image& truth);
  void close();

  int64_t frames() const { return frames_; }
  bool open() const { return open_; }
  std::shared_ptr<const std::string> gif() const { return gif_; }  // whole once it is closed; "" without frames

 private:
  double fps_;
  bool open_ = true;
  int64_t frames_ = 0;
  std::shared_ptr<std::string> gif_ = std::make_shared<std::string>();  // its readers may outlive the recording
  std::optional<io::GifWriter> writer_;
};

}  // namespace convssm::serve
