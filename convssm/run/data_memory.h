// What a process holds while it trains beside the model and its steps: the program with its libraries, and what is remembered of the files.
//   DataMemory memory;   auto dataset = make_dataset(...);   uint64_t bytes = memory.held();
#pragma once

#include <cstdint>

namespace convssm::run {

class DataMemory {
 public:
  DataMemory();  // before the dataset is opened

  // Bytes, with the dataset open: all that is resident, and what the thread takes that opens all files again to look for bad values: as
  // much as opening them left, and for a moment, while it opens them, as much again.
  uint64_t held() const;

 private:
  uint64_t before_;
};

}  // namespace convssm::run
