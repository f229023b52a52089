// Two sources: our operations report themselves (CountedConvolution, CountedProduct), libtorch's matrix products are
// seen by a callback of its profiler. While an operation of ours runs, the callback is deaf, or what it calls inside
// would count twice.
#include "convssm/ops/flop_meter.h"

#include <ATen/record_function.h>

#include <string_view>

#include "convssm/base/error.h"

namespace convssm::ops {
namespace {

thread_local FlopMeter* current = nullptr;

bool needs_gradient(const at::Tensor& x) { return at::GradMode::is_enabled() && x.requires_grad(); }

// The flops of a matrix product of libtorch by its arguments; 0 for any other operation.
uint64_t product_flops(std::string_view name, c10::ArrayRef<const c10::IValue> inputs) {
  const size_t first = name == "aten::mm" || name == "aten::bmm"          ? 0
                       : name == "aten::addmm" || name == "aten::baddbmm" ? 1
                                                                          : inputs.size();
  if (first + 1 >= inputs.size() || !inputs[first].isTensor() || !inputs[first + 1].isTensor()) return 0;
  const at::Tensor& b = inputs[first + 1].toTensor();
  return 2 * static_cast<uint64_t>(inputs[first].toTensor().numel()) * static_cast<uint64_t>(b.size(-1));
}

}  // namespace

struct FlopObserver {
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (current != nullptr && current->reported_ == 0) current->count_ += product_flops(call.name(), call.inputs());
    return nullptr;
  }
};

uint64_t ConvolutionShape::flops() const {
  const int64_t rows = (height + stride - 1) / stride, columns = (width + stride - 1) / stride;
  return 2 * static_cast<uint64_t>(frames * rows * columns) *
         static_cast<uint64_t>(out * (in / groups) * kernel_h * kernel_w);
}

FlopMeter::FlopMeter() {
  if (current != nullptr) fail(ErrorKind::usage, "[FlopMeter] there is one already in this thread");
  current = this;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&FlopObserver::begin).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

FlopMeter::~FlopMeter() {
  at::removeCallback(handle_);
  current = nullptr;
}

CountedConvolution::CountedConvolution(const at::Tensor& x, const at::Tensor& weight, bool bias, int64_t stride)
    : meter_(current) {
  if (meter_ == nullptr) return;
  const ConvolutionShape shape{
      x.size(0),      x.size(1), x.size(2), x.size(3),         weight.size(0),         weight.size(2),
      weight.size(3), stride,    bias,      needs_gradient(x), needs_gradient(weight), x.size(1) / weight.size(1)};
  if (meter_->reported_++ == 0) {
    meter_->count_ += shape.flops();
    meter_->convolutions_.push_back(shape);
  }
}

CountedConvolution::~CountedConvolution() {
  if (meter_ != nullptr) --meter_->reported_;
}

CountedProduct::CountedProduct(int64_t rows, int64_t inner, int64_t columns) : meter_(current) {
  if (meter_ == nullptr) return;
  if (meter_->reported_++ == 0) {
    meter_->count_ += 2 * static_cast<uint64_t>(rows * inner) * static_cast<uint64_t>(columns);
  }
}

CountedProduct::~CountedProduct() {
  if (meter_ != nullptr) --meter_->reported_;
}

}  // namespace convssm::ops
