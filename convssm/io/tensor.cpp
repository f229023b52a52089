// A tensor shares the array's memory and keeps it alive by a copy of its shared pointer. to_array resolves the lazy
// conjugate and negative bits of libtorch first: raw bytes would be those of the value before them.
#include "convssm/io/tensor.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <cstring>

#include "convssm/base/error.h"

namespace convssm::io {
namespace {

constexpr std::pair<DType, at::ScalarType> kTypes[] = {
    {DType::bool8, at::kBool}, {DType::u8, at::kByte},          {DType::i8, at::kChar},
    {DType::i16, at::kShort},  {DType::i32, at::kInt},          {DType::i64, at::kLong},
    {DType::f16, at::kHalf},   {DType::bf16, at::kBFloat16},    {DType::f32, at::kFloat},
    {DType::f64, at::kDouble}, {DType::c64, at::kComplexFloat}, {DType::c128, at::kComplexDouble},
};

at::ScalarType scalar_type(DType dtype) {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == dtype) return theirs;
  }
  fail(ErrorKind::data, "[to_tensor] libtorch has no type for {}; convert the array to i64 or f32 first",
       dtype_name(dtype));
}

DType dtype_of_tensor(const at::Tensor& tensor) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == tensor.scalar_type()) return ours;
  }
  fail(ErrorKind::usage, "[to_array] expected a plain number type, got {}", c10::toString(tensor.scalar_type()));
}

}  // namespace

at::Tensor to_tensor(const Array& array) {
  const auto options = at::TensorOptions().dtype(scalar_type(array.dtype()));
  if (array.byte_count() == 0) return at::empty(array.shape(), options);
  return at::from_blob(
      array.storage().get(), array.shape(), [keep = array.storage()](void*) {}, options);
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::IntArrayRef sizes) {
  const at::Tensor found = to_tensor(file.read(name));
  if (found.sizes() == sizes) return found;
  fail(ErrorKind::data, "the tensor '{}' has shape [{}], this model needs [{}]: it is of another model", name,
       fmt::join(found.sizes(), ","), fmt::join(sizes, ","));
}

Array to_array(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  Array array(dtype_of_tensor(plain), plain.sizes().vec());
  if (array.byte_count() > 0) std::memcpy(array.bytes().data(), plain.data_ptr(), array.byte_count());
  return array;
}

LazyArray lazy_array(std::string name, const at::Tensor& tensor) {
  return {std::move(name), {dtype_of_tensor(tensor), tensor.sizes().vec()}, [tensor] { return to_array(tensor); }};
}

void save_tensors(const std::string& path, const NamedTensors& tensors) {
  std::vector<LazyArray> arrays;
  for (const auto& [name, tensor] : tensors) arrays.push_back(lazy_array(name, tensor));
  stream_safetensors(path, arrays);
}

NamedTensors load_tensors(const std::string& path) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const std::string& name : file.names()) tensors.emplace_back(name, to_tensor(file.read(name)));
  return tensors;
}

}  // namespace convssm::io
