// An allocator by one function: from 2.x on libtorch asks for a function that copies, and calls allocate() on what is not
// const.
#pragma once

#include <c10/core/Allocator.h>
#include <torch/version.h>

namespace convssm::ops {

struct FunctionAllocator : c10::Allocator {
  virtual c10::DataPtr take(size_t size) const = 0;
#if TORCH_VERSION_MAJOR < 2
  c10::DataPtr allocate(size_t size) const final { return take(size); }
#else
  c10::DataPtr allocate(size_t size) final { return take(size); }
  void copy_data(void* to, const void* from, std::size_t count) const final { default_copy_data(to, from, count); }
#endif
};

}  // namespace convssm::ops
