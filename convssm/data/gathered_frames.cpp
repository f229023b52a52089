// The box has the dimensions of the array in their order; its elements are then copied to theirs.
#include "convssm/data/gathered_frames.h"

#include "convssm/io/array_box.h"

namespace convssm::data {

io::Array gathered_frames(ArrayCache& cache, const RecordingInfo& info, const std::string& key, int64_t clip,
                          int64_t first, int64_t count, const io::ArrayInfo* opened) {
  const int64_t C = info.channels, H = info.height, W = info.width;
  std::vector<int64_t> from, part, to_steps;
  for (const char letter : info.layout.letters) {
    from.push_back(letter == 'N' ? clip : letter == 'T' ? first : 0);
    part.push_back(letter == 'N' ? 1 : letter == 'T' ? count : letter == 'C' ? C : letter == 'H' ? H : W);
    to_steps.push_back(letter == 'N' ? 0 : letter == 'T' ? C * H * W : letter == 'C' ? H * W : letter == 'H' ? W : 1);
  }
  const io::Array box = cache.read_box(info.path, key, from, part, opened);
  io::Array frames = io::array_of_file(info.path, box.dtype(), {count, C, H, W}, box.byte_count());
  io::copy_elements(part, io::dtype_size(box.dtype()), box.bytes().data(), io::steps_of(part), frames.bytes().data(),
                    to_steps);
  return frames;
}

}  // namespace convssm::data
