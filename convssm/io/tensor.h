// Between arrays of files and tensors. Without a copy from array to tensor; 16-bit floats keep their type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "convssm/io/array.h"
#include "convssm/io/safetensors.h"

namespace convssm::io {

// A CPU tensor in the array's memory. u16, u32 and u64, which libtorch does not have, are refused.
at::Tensor to_tensor(const Array& array);

// A tensor of a file that has to have this shape. Error(data) names it if it is not there or has another.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::IntArrayRef sizes);

// A copy of the values in C order, from any device and layout.
Array to_array(const at::Tensor& tensor);

// The tensor for stream_safetensors: it is copied when it is written.
LazyArray lazy_array(std::string name, const at::Tensor& tensor);

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// A safetensors file of named tensors, whole or not at all; and back, in the order of the file.
void save_tensors(const std::string& path, const NamedTensors& tensors);
NamedTensors load_tensors(const std::string& path);

}  // namespace convssm::io
