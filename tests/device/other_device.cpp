// libtorch's XPU, for which these builds of it have no code. The address that a tensor shows is reserved memory that nobody
// may read; the values lie elsewhere. A boxed fallback takes every operation of the device: it shows the values as CPU
// tensors to the CPU's operation, in place, and takes new results over.
#include "other_device.h"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/FakeGuardImpl.h>
#include <sys/mman.h>
#include <torch/library.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "convssm/ops/libtorch.h"

namespace convssm::testing {
namespace {

constexpr auto kOther = c10::DeviceType::XPU;

std::atomic<int64_t> operations = 0;

struct Block {
  explicit Block(size_t bytes) : values(bytes), size(bytes) {
    shown = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shown == MAP_FAILED) throw std::runtime_error("no address space for the memory of the other device");
  }
  ~Block() { munmap(shown, size); }
  std::vector<std::byte> values;
  size_t size;
  void* shown;
};

bool is_other(const at::Tensor& x) { return x.defined() && x.device().type() == kOther; }

at::Tensor make_other(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  const size_t item = c10::elementSize(type);
  const size_t bytes = std::max<size_t>(at::detail::computeStorageNbytes(sizes, strides, item), 1);
  auto* block = new Block(bytes);
  at::DataPtr memory(
      block->shown, block, [](void* b) { delete static_cast<Block*>(b); }, other_device());
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, std::move(memory), nullptr, false);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::XPU), c10::scalarTypeToTypeMeta(type));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

// The values of `x`, which must outlive what is returned, as a CPU tensor.
at::Tensor values_of(const at::Tensor& x) {
  auto* block = static_cast<Block*>(x.storage().data_ptr().get_context());
  const auto options = at::TensorOptions().dtype(x.scalar_type());
  std::byte* first = block->values.data() + static_cast<size_t>(x.storage_offset()) * x.itemsize();
  at::Tensor values = at::from_blob(first, x.sizes(), x.strides(), options);
  values._set_conj(x.is_conj());
  values._set_neg(x.is_neg());
  return values;
}

at::Tensor take_over(const at::Tensor& cpu) {
  at::Tensor made = make_other(cpu.sizes(), cpu.strides(), cpu.scalar_type());
  values_of(made).copy_(cpu.resolve_conj().resolve_neg());
  return made;
}

// After an operation that wrote to `cpu`, which began as the values of `x` and may have got another size.
void write_back(const at::Tensor& x, const at::Tensor& cpu) {
  if (cpu.sizes() == x.sizes()) return;  // written in place
  const at::Tensor other = take_over(cpu.contiguous());
  x.unsafeGetTensorImpl()->set_storage_keep_dtype(other.storage());
  x.unsafeGetTensorImpl()->set_sizes_and_strides(other.sizes(), other.strides());
}

class Call {
 public:
  explicit Call(const c10::OperatorHandle& op) : op_(op) {}

  at::Tensor shown(const at::Tensor& x, bool written) {
    if (!x.defined()) return x;
    if (!is_other(x)) {
      TORCH_CHECK(x.dim() == 0, op_.schema().name(), ": expected all tensors on the other device, one of ", x.sizes(),
                  " is on ", x.device());
      return x;
    }
    at::Tensor cpu = values_of(x);
    if (written && x.numel() == 0) cpu = at::empty(x.sizes(), cpu.options());  // a result whose size is not known yet
    pairs_.emplace_back(x, cpu);
    return cpu;
  }

  c10::IValue argument(const c10::IValue& value, bool written) {
    if (value.isTensor()) return shown(value.toTensor(), written);
    if (value.isDevice()) return c10::Device(c10::DeviceType::CPU);
    if (value.isTensorList()) {
      std::vector<at::Tensor> all;
      for (const at::Tensor& x : value.toTensorVector()) all.push_back(shown(x, written));
      return all;
    }
    if (value.isList() && value.toListRef().size() > 0) {  // optional tensors of an index
      c10::List<OptionalTensor> all;
      bool tensors = true;
      for (const c10::IValue& item : value.toListRef()) {
        if (!item.isTensor() && !item.isNone()) tensors = false;
        all.push_back(item.isTensor() ? OptionalTensor(shown(item.toTensor(), written)) : nullopt);
      }
      if (tensors) return all;
    }
    return value;
  }

  at::Tensor result(const at::Tensor& cpu) const {
    if (!cpu.defined()) return cpu;
    for (const auto& [x, shown] : pairs_) {
      if (cpu.is_same(shown)) return x;  // an argument that was written to
    }
    return take_over(cpu);
  }

  void finish() const {
    for (const auto& [x, cpu] : pairs_) write_back(x, cpu);
  }

 private:
  const c10::OperatorHandle& op_;
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;  // a tensor of the device and how it was shown
};

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++operations;
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  Call call(op);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = arguments[i].alias_info();
    (*stack)[first + i] = call.argument((*stack)[first + i], alias != nullptr && alias->isWrite());
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  call.finish();
  for (c10::IValue& value : *stack) {
    if (value.isTensor()) {
      value = call.result(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> all;
      for (const at::Tensor& x : value.toTensorVector()) all.push_back(call.result(x));
      value = all;
    }
  }
}

at::Tensor empty(at::IntArrayRef sizes, Optional<at::ScalarType> type, Optional<at::Layout>, Optional<at::Device>,
                 Optional<bool>, Optional<at::MemoryFormat> format) {
  const at::Tensor layout = at::empty(sizes, at::TensorOptions().dtype(type), format);
  return make_other(sizes, layout.strides(), layout.scalar_type());
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, Optional<at::ScalarType> type,
                         Optional<at::Layout>, Optional<at::Device>, Optional<bool>) {
  return make_other(sizes, strides, type.value_or(at::kFloat));
}

// Between the devices, and within one: what every copy comes down to.
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  ++operations;
  at::Tensor target = is_other(to) ? values_of(to) : to;
  target.copy_(is_other(from) ? values_of(from) : from);
  return to;
}

// Convolutions are the only operations that libtorch does not leave to a fallback.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  ++operations;
  const at::Tensor b = bias && bias->defined() ? values_of(*bias) : at::Tensor();
  return take_over(at::convolution(values_of(x), values_of(weight), b, stride, padding, dilation, transposed,
                                   output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& gradient, const at::Tensor& x,
                                                                    const at::Tensor& weight, at::IntArrayRef stride,
                                                                    at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                    bool transposed, at::IntArrayRef output_padding,
                                                                    int64_t groups, std::array<bool, 3> wanted) {
  ++operations;
  const auto [dx, dw, db] =
      at::convolution_backward(values_of(gradient), values_of(x), values_of(weight), at::IntArrayRef{weight.size(0)},
                               stride, padding, dilation, transposed, output_padding, groups, wanted);
  const auto given = [](const at::Tensor& cpu) { return cpu.defined() ? take_over(cpu) : cpu; };
  return {given(dx), given(dw), given(db)};
}

}  // namespace

at::Device other_device() { return {kOther, 0}; }

std::string obstacle_to_gradients() {
  using c10::impl::getDeviceGuardImpl, c10::impl::hasDeviceGuardImpl;
  if (!hasDeviceGuardImpl(at::kCUDA) || getDeviceGuardImpl(at::kCUDA)->deviceCount() > 0) return "";
  return "this libtorch has CUDA, whose driver is not installed";
}

int64_t operations_on_other_device() { return operations; }

TORCH_LIBRARY_IMPL(_, XPU, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }

// Views share memory: they are made from sizes and strides alone.
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  m.impl("view", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(&at::native::view));
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
}

C10_REGISTER_GUARD_IMPL(XPU, c10::impl::FakeGuardImpl<c10::DeviceType::XPU>)

}  // namespace convssm::testing
