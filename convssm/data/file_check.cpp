// A check is the conversion that training does, thrown away: one rule for what is a pixel.
#include "convssm/data/file_check.h"

#include <algorithm>

#include "convssm/base/log.h"
#include "convssm/base/memory.h"
#include "convssm/data/skipped_files.h"

namespace convssm::data {
namespace {

constexpr uint64_t chunk_elements = uint64_t{1} << 20;

// Whether values of this type can be anything but pixels.
bool may_be_bad(const RecordingInfo& info, const PixelRanges& ranges) {
  if (io::is_float(info.dtype)) return true;
  const auto holds_bytes = [](const Channel& channel) { return channel.low <= 0 && channel.high >= 255; };
  const bool bytes = info.dtype == io::DType::u8 || info.dtype == io::DType::bool8;
  return !ranges.clamp && !(bytes && std::ranges::all_of(ranges.channels, holds_bytes));
}

uint64_t bytes_of(const RecordingInfo& info) {
  return static_cast<uint64_t>(info.all_frames()) * info.frame_elements() * io::dtype_size(info.dtype);
}

void look_for_bad_pixels(const RecordingInfo& info, const PixelRanges& ranges, const std::atomic<bool>& stop) {
  std::vector<float> pixels;
  std::unique_ptr<bool[]> valid;
  uint64_t room = 0;
  for_each_chunk(info, [&](Recording& recording, int64_t clip, int64_t first, int64_t count) {
    const uint64_t elements = static_cast<uint64_t>(count) * info.frame_elements();
    pixels.resize(elements);
    if (info.may_miss && elements > room) valid = std::make_unique<bool[]>(room = elements);
    recording.read_pixels(clip, first, count, ranges, pixels.data(), valid.get());
    return !stop;
  });
}

}  // namespace

void for_each_chunk(const RecordingInfo& info,
                    const std::function<bool(Recording&, int64_t clip, int64_t first, int64_t count)>& look,
                    const std::function<void(const Error&)>& bad) {
  const auto recording = reopen_in_order(info);
  const auto step = static_cast<int64_t>(std::max<uint64_t>(1, chunk_elements / info.frame_elements()));
  for (int64_t clip = 0; clip < info.clips; ++clip) {
    for (int64_t first = 0; first < info.length(clip); first += step) {
      try {
        if (!look(*recording, clip, first, std::min(step, info.length(clip) - first))) return;
      } catch (const Error& error) {
        if (!bad || !is_of_files(error)) throw;
        bad(error);
      }
    }
  }
}

void check_pixels(const RecordingInfo& info, const PixelRanges& ranges) { look_for_bad_pixels(info, ranges, false); }

FileCheck::FileCheck(const std::vector<RecordingInfo>& files, PixelRanges ranges, bool only_warn, uint64_t limit)
    : ranges_(std::move(ranges)), only_warn_(only_warn) {
  uint64_t bytes = 0;
  for (const RecordingInfo& file : files) {
    if (!may_be_bad(file, ranges_)) continue;
    files_.push_back(file);
    bytes += bytes_of(file);
  }
  if (bytes > limit) {
    log_info("data: {} are looked through for bad values while training goes on", format_bytes(bytes));
    thread_ = std::thread([this] { look_through(); });
    return;
  }
  for (const RecordingInfo& file : files_) look_at(file);
}

FileCheck::~FileCheck() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void FileCheck::look_through() {
  try {
    for (const RecordingInfo& file : files_) {
      if (stop_) return;
      look_at(file);
    }
  } catch (...) {
    error_ = std::current_exception();
    found_ = true;
  }
}

void FileCheck::look_at(const RecordingInfo& file) {
  try {
    look_for_bad_pixels(file, ranges_, stop_);
  } catch (const Error& error) {
    if (!only_warn_ || !is_of_files(error)) throw;
    log_warning("data: windows with it are not trained on: {}", error.what());
  }
}

void FileCheck::rethrow() const {
  if (found_) std::rethrow_exception(error_);
}

}  // namespace convssm::data
