// Feeds arbitrary bytes to the reader of videos of all containers: as a whole, and frames at its end. Nothing but an Error may come of damaged bytes: anything else stops the
// fuzzer.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "convssm/base/error.h"
#include "convssm/io/video_read.h"

namespace {

void read_everything(std::shared_ptr<const convssm::io::Source> source) {
  using namespace convssm::io;
  if (const auto index = index_video(source)) {
    const int64_t first = index->frames() - 1;
    VideoFrames(source, *index).read(first, 1);
  }
  read_video(std::move(source));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_everything(convssm::io::memory_source("fuzz", std::as_bytes(std::span(data, size))));
  } catch (const convssm::Error&) {
  }
  return 0;
}
