// Devices. Kernels of ours are for the CPU; on any other device every operation takes its plain version, which is tensor
// operations alone. A tensor decides by where it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace convssm::ops {

// "cpu", "cuda", "cuda:1". Error(usage) that says what there is instead if it is not there.
at::Device parse_device(const std::string& text);

// "cpu", "cuda:0", ...
std::vector<std::string> device_names();

// Whether the kernels of the CPU may run on `x`.
bool takes_kernels(const at::Tensor& x);

// takes_kernels, and float32 or float64, which is what most kernels are written for.
bool has_kernels(const at::Tensor& x);

// While it lives all operations take their plain versions on the CPU too, in every thread: what another device would run.
class PlainKernels {
 public:
  PlainKernels();
  ~PlainKernels();
  PlainKernels(const PlainKernels&) = delete;
  PlainKernels& operator=(const PlainKernels&) = delete;
};

// What libtorch itself draws on a device (dropout), it draws from default generators: that of the CPU and that of the
// device. Their seeds, and their states to draw the same again.
void seed_generators(at::Device device, uint64_t seed);
std::vector<at::Tensor> generator_states(at::Device device);
void set_generator_states(at::Device device, const std::vector<at::Tensor>& states);

}  // namespace convssm::ops
