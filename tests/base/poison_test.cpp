// Marked memory: under AddressSanitizer touching it ends the program, elsewhere the marks are nothing.
#include "convssm/base/poison.h"

#include <gtest/gtest.h>

#include <vector>

namespace convssm {
namespace {

TEST(Poison, EndsAProgramThatTouchesIt) {
  std::vector<float> memory(32);  // marks are kept for 8 bytes at once: a marked region may begin within them, not end
  poison(memory.data() + 5, 5 * sizeof(float));
  memory[4] = memory[10] = 1;
  touch(memory.data(), 5 * sizeof(float));
  if (poisons_memory) {
    EXPECT_DEATH(memory[5] = 1, "use-after-poison");
    EXPECT_DEATH(memory[9] = 1, "use-after-poison");
    EXPECT_DEATH(touch(memory.data(), 6 * sizeof(float)), "use-after-poison");
  }
  unpoison(memory.data() + 5, 5 * sizeof(float));
  memory[5] = memory[9] = 1;
  touch(memory.data(), 32 * sizeof(float));
}

}  // namespace
}  // namespace convssm
