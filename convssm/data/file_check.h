// Looks for what training would refuse in the middle: pixels that are not finite numbers or outside of their range. A set
// that is read in seconds is looked through at once; a large one by a thread while training goes on.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"

namespace convssm::data {

// Calls `look(recording, clip, first, count)` for all frames of a recording, some at a time and in order, until it is false.
// With `bad`, data that cannot be read goes there, and what comes after it is looked at.
void for_each_chunk(const RecordingInfo& info,
                    const std::function<bool(Recording&, int64_t clip, int64_t first, int64_t count)>& look,
                    const std::function<void(const Error&)>& bad = {});

// Error(data) that names file, place and value of the first pixel that read_pixels would refuse.
void check_pixels(const RecordingInfo& info, const PixelRanges& ranges);

class FileCheck {
 public:
  static constexpr uint64_t at_once = uint64_t{1} << 30;  // bytes of files
  static constexpr uint64_t buffers = uint64_t{1}
                                      << 24;  // bytes that the thread reads and converts at once, of small frames

  // Files with up to `limit` bytes of pixels are checked here, as by check_pixels. With `only_warn` what is found is a warning for
  // each file: windows with it are left out when they are read.
  FileCheck(const std::vector<RecordingInfo>& files, PixelRanges ranges, bool only_warn = false,
            uint64_t limit = at_once);
  ~FileCheck();  // does not wait for the rest of the files
  FileCheck(const FileCheck&) = delete;
  FileCheck& operator=(const FileCheck&) = delete;

  // Throws what the thread has found.
  void rethrow() const;

 private:
  void look_through();
  void look_at(const RecordingInfo& file);

  std::vector<RecordingInfo> files_;
  PixelRanges ranges_;
  bool only_warn_;
  std::atomic<bool> stop_ = false, found_ = false;
  std::exception_ptr error_;  // written before found_
  std::thread thread_;
};

}  // namespace convssm::data
