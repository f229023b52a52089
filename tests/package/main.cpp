// A user's program with the whole library: a tensor to a file and back, and an error that names the file.
#include <ATen/ATen.h>

#include <cstdio>
#include <string>

#include "convssm/base/error.h"
#include "convssm/io/npy.h"
#include "convssm/io/tensor.h"

int main(int, char** argv) {
  const std::string path = std::string(argv[0]) + ".npy";
  const at::Tensor written = at::arange(24, at::kFloat).view({2, 3, 4});
  convssm::io::write_npy(path, convssm::io::to_array(written));
  const at::Tensor read = convssm::io::to_tensor(convssm::io::read_npy(path));
  if (!at::equal(read, written)) return std::puts("an array was changed by its file"), 1;
  try {
    convssm::io::read_npy("absent.npy");
    return std::puts("a missing file was read"), 1;
  } catch (const convssm::Error& error) {
    std::printf("convssm reads and writes; a missing file: %s\n", error.what());
  }
  return 0;
}
