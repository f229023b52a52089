// An array of a .npy or .npz file from its first element to its last, chunk by chunk: also compressed ones, whose
// chunks cannot be read out of order, in the memory of a chunk. (Fortran order is read whole.)
//   ArrayStream clips("samples.npz", "fake");   Array clip = clips.next(frames * height * width);
#pragma once

#include <memory>
#include <string>

#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

class ArrayStream {
 public:
  // `name` and errors as of ArrayFile.
  ArrayStream(const std::string& path, const std::string& name);

  const ArrayInfo& info() const { return info_; }

  // The next `count` elements in C order, as [count]. Error(usage) if fewer are left. The checksum of an .npz member is
  // verified with its last element.
  Array next(uint64_t count);

 private:
  std::string path_;
  ArrayInfo info_;
  bool big_endian_ = false;
  std::unique_ptr<Reader> reader_;  // null: `whole_`
  Array whole_;
  uint64_t position_ = 0, size_ = 0;  // in elements
};

}  // namespace convssm::io
