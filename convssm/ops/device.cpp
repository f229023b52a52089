// A device is there if libtorch has a guard for its kind and the guard counts it: no header of CUDA is needed.
#include "convssm/ops/device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <atomic>
#include <mutex>

#include "convssm/base/error.h"

namespace convssm::ops {
namespace {

std::atomic<int> plain_scopes = 0;

int64_t count_devices(at::DeviceType type) {
  return c10::impl::hasDeviceGuardImpl(type) ? c10::impl::getDeviceGuardImpl(type)->deviceCount() : 0;
}

std::vector<at::Generator> generators(at::Device device) {
  std::vector<at::Generator> all{at::detail::getDefaultCPUGenerator()};
  if (device.is_cuda()) all.push_back(at::globalContext().defaultGenerator(device));
  return all;
}

template <typename Run>
void with_generators(at::Device device, const Run& run) {
  for (at::Generator& generator : generators(device)) {
    const std::lock_guard lock(generator.mutex());
    run(generator);
  }
}

}  // namespace

at::Device parse_device(const std::string& text) {
  at::Device device = at::kCPU;
  try {
    device = at::Device(text);
  } catch (const c10::Error&) {
    fail(ErrorKind::usage, "[device] expected cpu, cuda or cuda:N, got '{}'", text);
  }
  if (device.is_cpu()) return at::kCPU;
  if (!c10::impl::hasDeviceGuardImpl(device.type())) {
    fail(ErrorKind::usage,
         "[device] '{}' is asked for, but this program was built with a libtorch ({}) that knows no {}; take --device "
         "cpu, or build with a libtorch that knows it",
         text, TORCH_VERSION, c10::DeviceTypeName(device.type(), true));
  }
  const int64_t count = count_devices(device.type());
  const int64_t index = device.has_index() ? device.index() : 0;
  if (index >= count) {
    fail(ErrorKind::usage, "[device] '{}' is asked for, but there {}: {} (is the driver there? CUDA_VISIBLE_DEVICES?)",
         text, count == 0 ? "is no such device, only" : "are only", fmt::join(device_names(), ", "));
  }
  return {device.type(), static_cast<c10::DeviceIndex>(index)};
}

std::vector<std::string> device_names() {
  std::vector<std::string> names{"cpu"};
  for (int64_t i = 0; i < count_devices(at::kCUDA); ++i) names.push_back(fmt::format("cuda:{}", i));
  return names;
}

bool takes_kernels(const at::Tensor& x) { return x.device().is_cpu() && plain_scopes == 0; }

bool has_kernels(const at::Tensor& x) {
  return takes_kernels(x) && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

PlainKernels::PlainKernels() { ++plain_scopes; }

PlainKernels::~PlainKernels() { --plain_scopes; }

void seed_generators(at::Device device, uint64_t seed) {
  with_generators(device, [&](at::Generator& generator) { generator.set_current_seed(seed); });
}

std::vector<at::Tensor> generator_states(at::Device device) {
  std::vector<at::Tensor> states;
  with_generators(device, [&](at::Generator& generator) { states.push_back(generator.get_state()); });
  return states;
}

void set_generator_states(at::Device device, const std::vector<at::Tensor>& states) {
  auto state = states.begin();
  with_generators(device, [&](at::Generator& generator) { generator.set_state(*state++); });
}

}  // namespace convssm::ops
