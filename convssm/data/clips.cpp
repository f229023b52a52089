// Cutting, joining and repeating clips: one list of the members, so that a new member is handled everywhere at once.
#include "convssm/data/clips.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "convssm/ops/check.h"

namespace convssm::data {
namespace {

constexpr std::pair<const char*, at::Tensor Clips::*> kMembers[] = {{"video", &Clips::video},
                                                                    {"actions", &Clips::actions},
                                                                    {"inputs", &Clips::inputs},
                                                                    {"codes", &Clips::codes},
                                                                    {"valid", &Clips::valid},
                                                                    {"revisit", &Clips::revisit},
                                                                    {"inputs_valid", &Clips::inputs_valid}};
constexpr std::pair<const char*, at::Tensor ClipTiming::*> kTimes[] = {
    {"dt", &ClipTiming::dt}, {"resets", &ClipTiming::resets}, {"times", &ClipTiming::times}};

// `change` on every member that is there.
template <typename Change>
Clips changed(const Clips& clips, const Change& change) {
  Clips result;
  result.timing.step_rescale = clips.timing.step_rescale;
  const auto apply = [&](const at::Tensor& from, at::Tensor& to) {
    if (from.defined()) to = change(from);
  };
  for (const auto& [name, member] : kMembers) apply(clips.*member, result.*member);
  for (const auto& [name, member] : kTimes) apply(clips.timing.*member, result.timing.*member);
  return result;
}

const at::Tensor& frames_or_codes(const Clips& clips) { return clips.video.defined() ? clips.video : clips.codes; }

at::Tensor empty_rows(const at::Tensor& row, int64_t rows) {
  std::vector<int64_t> sizes = row.sizes().vec();
  sizes[0] = rows;
  return at::empty(sizes, row.options());
}

// One batch runs at one rate.
void check_rescale(const char* operation, size_t index, const Clips& clips, const Clips& first) {
  ops::require(operation, clips.timing.step_rescale == first.timing.step_rescale,
               "clip {} has a step_rescale of {}, the first of its batch {}", index, clips.timing.step_rescale,
               first.timing.step_rescale);
}

void check_member(const char* operation, const char* name, const at::Tensor& member, at::IntArrayRef sizes) {
  if (member.defined()) ops::require_shape(operation, name, member, sizes);
}

void check_like(const char* operation, const char* name, const at::Tensor& member, const at::Tensor& frames) {
  if (!member.defined()) return;
  ops::require(operation, frames.defined(), "there are {} without a video", name);
  check_member(operation, name, member, frames.sizes());
}

void check_actions(const char* operation, const at::Tensor& actions, int64_t B, int64_t T) {
  if (!actions.defined()) return;
  const int64_t dims = actions.dim();
  ops::require(operation, (dims == 2 || dims == 3 || dims == 5) && actions.size(0) == B && actions.size(1) == T,
               "actions must be [{},{}], [{},{},A] or [{},{},M,H,W], one for each frame, got {}", B, T, B, T, B, T,
               ops::shape_text(actions.sizes()));
  ops::require(operation, dims > 2 ? actions.is_floating_point() : actions.scalar_type() == at::kLong,
               "actions must be int64 [B,T] or floats [B,T,A] or [B,T,M,H,W], got {} {}", ops::dtype_text(actions),
               ops::shape_text(actions.sizes()));
}

void check_revisit(const char* operation, const at::Tensor& revisit, int64_t B, int64_t T) {
  if (!revisit.defined()) return;
  check_member(operation, "revisit", revisit, {B, T});
  ops::require(operation, revisit.scalar_type() == at::kLong, "revisit must be int64, got {}",
               ops::dtype_text(revisit));
  if (!revisit.device().is_cpu()) return;  // elsewhere it would wait for the device
  const bool earlier = revisit.ge(-1).all().item<bool>() && revisit.lt(at::arange(T, at::kLong)).all().item<bool>();
  ops::require(operation, earlier, "each revisit must be the number of an earlier frame, or -1");
}

}  // namespace

int64_t Clips::batch() const {
  const at::Tensor& x = frames_or_codes(*this);
  return x.defined() ? x.size(0) : 0;
}

int64_t Clips::frames() const {
  const at::Tensor& x = frames_or_codes(*this);
  return x.defined() ? x.size(1) : 0;
}

Clips frames_of(const Clips& clips, int64_t begin, int64_t end) {
  Clips piece = changed(clips, [&](const at::Tensor& x) { return x.slice(1, begin, end); });
  if (piece.revisit.defined() && begin > 0) piece.revisit = (piece.revisit - begin).clamp_min(-1);
  return piece;
}

Clips rows_of(const Clips& clips, int64_t begin, int64_t end) {
  return changed(clips, [&](const at::Tensor& x) { return x.slice(0, begin, end); });
}

Clips rows_at(const Clips& clips, const std::vector<int64_t>& rows) {
  return changed(clips, [&](const at::Tensor& x) { return x.index_select(0, at::tensor(rows).to(x.device())); });
}

Clips to_device(const Clips& clips, at::Device device) {
  return changed(clips, [&](const at::Tensor& x) { return x.to(device); });
}

Clips stack_rows(const std::vector<Clips>& batches) {
  ops::require("stack_rows", !batches.empty(), "there are no clips to join");
  const auto joined = [&](const auto& member_of) {
    std::vector<at::Tensor> rows;
    for (const Clips& batch : batches) {
      if (const at::Tensor& x = member_of(batch); x.defined()) rows.push_back(x);
    }
    ops::require("stack_rows", rows.empty() || rows.size() == batches.size(),
                 "{} of {} clips have something that the others have not", rows.size(), batches.size());
    return rows.empty() ? at::Tensor() : at::cat(rows);
  };
  Clips result;
  result.timing.step_rescale = batches[0].timing.step_rescale;
  for (const auto& [name, m] : kMembers) result.*m = joined([m = m](const Clips& c) { return c.*m; });
  for (const auto& [name, m] : kTimes) result.timing.*m = joined([m = m](const Clips& c) { return c.timing.*m; });
  for (size_t i = 1; i < batches.size(); ++i) check_rescale("stack_rows", i, batches[i], result);
  return result;
}

void put_row(const Clips& row, int64_t at, int64_t rows, Clips& batch) {
  ops::require("put_row", row.batch() == 1 && at >= 0 && at < rows, "expected a batch of one for row {} of {}", at,
               rows);
  const auto put = [&](const char* name, const at::Tensor& from, at::Tensor& to) {
    ops::require("put_row", !from.defined() || (from.dim() >= 2 && from.size(0) == 1),
                 "clip {}: {} must be [1,T,...], a batch of one, got {}", at, name,
                 from.defined() ? ops::shape_text(from.sizes()) : "none");
    if (at == 0) to = from.defined() ? empty_rows(from, rows) : at::Tensor();
    ops::require("put_row", from.defined() == to.defined(),
                 "clip {} has something that the others have not, or lacks it", at);
    if (!from.defined()) return;
    ops::require("put_row", from.sizes().slice(1) == to.sizes().slice(1) && from.scalar_type() == to.scalar_type(),
                 "clip {} is {} {}, the first of its batch {} {}", at, ops::dtype_text(from),
                 ops::shape_text(from.sizes().slice(1)), ops::dtype_text(to), ops::shape_text(to.sizes().slice(1)));
    const at::Tensor plain = from.contiguous();
    std::memcpy(static_cast<std::byte*>(to.data_ptr()) + static_cast<size_t>(at) * plain.nbytes(), plain.data_ptr(),
                plain.nbytes());
  };
  if (at == 0) batch.timing.step_rescale = row.timing.step_rescale;
  check_rescale("put_row", static_cast<size_t>(at), row, batch);
  for (const auto& [name, member] : kMembers) put(name, row.*member, batch.*member);
  for (const auto& [name, member] : kTimes) put(name, row.timing.*member, batch.timing.*member);
}

Clips repeat_rows(const Clips& clips, int64_t times) {
  if (times == 1) return clips;
  return changed(clips, [&](const at::Tensor& x) { return x.repeat_interleave(times, 0); });
}

at::Tensor masked_like(const at::Tensor& actions) {
  if (!actions.defined()) return {};
  return actions.is_floating_point() ? at::full_like(actions, std::numeric_limits<double>::quiet_NaN())
                                     : at::full_like(actions, -1);
}

at::Tensor with_missing(const Clips& clips) {
  if (!clips.valid.defined()) return clips.video;
  return at::where(clips.valid, clips.video,
                   at::full({}, std::numeric_limits<double>::quiet_NaN(), clips.video.options()));
}

void check_clips(const char* operation, const Clips& clips) {
  if (clips.video.defined()) ops::require_dims(operation, "video", clips.video, 5, "[B,T,C,H,W]");
  if (clips.codes.defined()) ops::require_dims(operation, "codes", clips.codes, 4, "[B,T,h,w]");
  const int64_t B = clips.batch(), T = clips.frames();
  check_actions(operation, clips.actions, B, T);
  if (clips.video.defined() && clips.codes.defined()) {
    check_member(operation, "codes", clips.codes, {B, T, clips.codes.size(2), clips.codes.size(3)});
  }
  check_like(operation, "inputs", clips.inputs, clips.video.defined() ? clips.video : clips.codes);
  check_like(operation, "valid", clips.valid, clips.video);
  check_like(operation, "inputs_valid", clips.inputs_valid, clips.video);
  check_revisit(operation, clips.revisit, B, T);
  check_member(operation, "dt", clips.timing.dt, {B, T});
  check_member(operation, "resets", clips.timing.resets, {B, T});
  check_member(operation, "times", clips.timing.times, {B, T});
  if (clips.timing.dt.defined() && clips.timing.dt.device().is_cpu()) {  // elsewhere it would wait for the device
    ops::require(operation, clips.timing.dt.gt(0).all().item<bool>(), "all intervals dt must be positive");
  }
  const double rescale = clips.timing.step_rescale;
  ops::require(operation, std::isfinite(rescale) && rescale > 0, "step_rescale must be positive, got {}", rescale);
}

}  // namespace convssm::data
