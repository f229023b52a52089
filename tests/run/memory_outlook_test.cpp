// What is said of the memory of a training counts the program and its files, and reads none of their frames.
#include "convssm/run/memory_outlook.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../base/scratch_folder.h"
#include "convssm/base/memory.h"
#include "convssm/data/file_check.h"
#include "convssm/io/npy.h"
#include "convssm/io/tensor.h"
#include "convssm/run/data_memory.h"

namespace convssm::run {
namespace {

TEST(DataMemory, IsWhatIsResidentAndWhatTheCheckReads) {
  return_free_memory();
  const uint64_t before = current_rss();
  const DataMemory memory;
  EXPECT_GE(memory.held(), before + data::FileCheck::buffers / 2);
  // What is opened is held once by the dataset, and up to twice by the thread that opens it again.
  const std::vector<char> opened(uint64_t{64} << 20, 'x');
  EXPECT_GT(memory.held(), before + 3 * (uint64_t{60} << 20)) << opened[7];
}

TEST(MemoryOutlook, NeedsNoFrames) {
  const ScratchFolder folder;
  at::Tensor values = at::rand({60, 12, 12});
  values.slice(0, 0, 50) = NAN;  // nothing was measured, which no training takes
  io::write_npy(folder.path("a.npy"), io::to_array(values));
  const std::string text = memory_outlook(
      "model: {name: pixel, encoder: {depths: [8]}, decoder: {depths: [8]}, core: {name: convs5, features: 8, "
      "state_size: 8}}\n"
      "data: {name: folder, path: " +
      folder.path("a.npy") + ", missing: mask, low: 0, high: 1}\ntrain: {steps: 5, batch: 1, frames: 8}\n");
  EXPECT_NE(text.find("a training of this config takes about"), std::string::npos) << text;
  EXPECT_NE(text.find("of it for the program and its data"), std::string::npos) << text;
}

}  // namespace
}  // namespace convssm::run
