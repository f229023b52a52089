// Doors, steps and the memory of a plan; the building methods are in frame_steps_*.cpp. A buffer lives from its first
// to its last step, and finish() gives the same slot of one arena to buffers whose lives do not overlap, so that the
// memory of a frame is small and warm. States lie outside of the arena, because they outlive the frame.
#include "convssm/nn/frame_plan.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/poison.h"
#include "convssm/ops/check.h"
#include "convssm/ops/packed_conv.h"

namespace convssm::nn {
namespace {

constexpr int64_t kAlign = 16;  // floats: 64 bytes

// Under AddressSanitizer every buffer has memory of its own with a gap after it, and a step can touch the buffers that it
// named and nothing else: what overruns a buffer or was forgotten in the list of a step is reported. Otherwise it would be
// another buffer's values, now and then.
constexpr int64_t kGap = poisons_memory ? kAlign : 0;

int64_t aligned(int64_t size) { return (size + kAlign - 1) / kAlign * kAlign; }

// Memory that buffers share one after the other.
struct Slot {
  int64_t size;
  size_t free_after;  // the last step that touches it so far
  int64_t offset = 0;
};

// The smallest slot that is free and large enough; else the largest free one, which then grows; else a new one.
size_t pick_slot(std::vector<Slot>& slots, int64_t size, size_t first) {
  size_t best = slots.size();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (poisons_memory || slots[i].free_after >= first) continue;
    if (best == slots.size()) {
      best = i;
      continue;
    }
    const bool fits = slots[i].size >= size, best_fits = slots[best].size >= size;
    const bool smaller = slots[i].size < slots[best].size;
    if (fits != best_fits ? fits : fits == smaller) best = i;
  }
  if (best == slots.size()) slots.push_back({size, 0});
  slots[best].size = std::max(slots[best].size, size);
  return best;
}

}  // namespace

FramePlan::FramePlan(const FramePlanOptions& options) : options_(options) {
  ops::require("FramePlan", options.batch > 0, "batch must be positive, got {}", options.batch);
}

FramePlan::~FramePlan() {
  if (arena_.defined()) unpoison(arena_.data_ptr(), arena_.nbytes());
}

at::Tensor FramePlan::door(const std::string& name, at::IntArrayRef sizes, at::ScalarType type) {
  ops::require("FramePlan", !doors_.contains(name), "there are two doors of the name {}", name);
  return doors_[name] = at::zeros(sizes, type);
}

Buffer FramePlan::state(const std::string& name, int64_t channels, int64_t height, int64_t width,
                        const at::Tensor& first) {
  const Buffer x = make(channels, height, width);
  const at::Tensor values = door(scope_ + name, {batch(), height, width, channels});
  states_.push_back(scope_ + name);
  doors_[scope_ + name] = values.permute({0, 3, 1, 2});
  memory_[x.id].data = values.data_ptr<float>();
  memory_[x.id].kept = true;
  if (first.defined()) {
    ops::require_shape("FramePlan", "first", first, {channels});
    first_[scope_ + name] = first.detach().to(at::kFloat).clone().view({1, channels, 1, 1});
    begin(scope_ + name);
  }
  return x;
}

void FramePlan::begin(const std::string& state) {
  const auto found = first_.find(state);
  at::Tensor values = doors_.at(state);
  found == first_.end() ? values.zero_() : values.copy_(found->second.expand_as(values));
}

Buffer FramePlan::make(int64_t channels, int64_t height, int64_t width) {
  const Buffer x{static_cast<int64_t>(memory_.size()), channels, height, width};
  memory_.push_back({size(x), nullptr, false, steps_.size(), steps_.size()});
  return x;
}

void FramePlan::step(std::initializer_list<Buffer> touched, std::function<void()> run) {
  ops::require("FramePlan", !finished_, "the plan is finished; build before finish()");
  std::vector<int64_t> ids;
  for (const Buffer& x : touched) {
    if (x.id < 0) continue;
    memory_[x.id].last = steps_.size();
    ids.push_back(x.id);
  }
  steps_.push_back({std::move(run), std::move(ids)});
}

void FramePlan::finish() {
  ops::require("FramePlan", options_.ranges.empty() || options_.ranges.size() == convs_,
               "expected the ranges of {} convolutions, got {}: they are of another model", convs_,
               options_.ranges.size());
  std::vector<Slot> slots;
  std::vector<size_t> slot_of(memory_.size());
  for (size_t i = 0; i < memory_.size(); ++i) {  // in the order of their first steps
    if (memory_[i].kept) continue;
    slot_of[i] = pick_slot(slots, aligned(memory_[i].size), memory_[i].first);
    slots[slot_of[i]].free_after = memory_[i].last;
  }
  int64_t total = 0;
  for (Slot& slot : slots) {
    slot.offset = total;
    total += slot.size + kGap;
  }
  arena_ = at::zeros({std::max<int64_t>(total, 1)});
  scratch_ = at::zeros({static_cast<int64_t>(scratch_bytes_) + 1}, at::kByte);
  for (size_t i = 0; i < memory_.size(); ++i) {
    if (!memory_[i].kept) memory_[i].data = arena_.data_ptr<float>() + slots[slot_of[i]].offset;
  }
  finished_ = true;
}

void FramePlan::open_for(const Step& step) {
  poison(arena_.data_ptr(), arena_.nbytes());
  for (const int64_t id : step.touched) {
    const Memory& memory = memory_[id];
    if (!memory.kept) unpoison(memory.data, static_cast<size_t>(memory.size) * sizeof(float));
  }
}

void FramePlan::run_steps(size_t end) {
  ops::require("FramePlan", finished_, "the plan has no memory yet; call finish() first");
  for (size_t i = 0; i < end; ++i) {
    if constexpr (poisons_memory) open_for(steps_[i]);
    steps_[i].run();
  }
}

size_t FramePlan::bytes() const {
  size_t total = arena_.defined() ? arena_.nbytes() + scratch_.nbytes() : 0;
  for (const auto& [name, values] : doors_) total += values.nbytes();
  return total;
}

}  // namespace convssm::nn
