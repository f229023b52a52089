// The model made anew has the parameters and buffers of the old one and no others, of the same shapes: a user's own model
// that says it takes any size and does not is found out here, not by wrong numbers.
#include "convssm/run/frame_size.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"
#include "convssm/models/registry.h"
#include "convssm/ops/check.h"

namespace convssm::run {
namespace {

template <typename Values>
void copy_values(const Values& from, const Values& to) {
  at::NoGradGuard no_grad;
  if (from.size() != to.size()) {
    fail(ErrorKind::usage, "the model has {} tensors, and {} with frames of the other size: its weights belong to one",
         from.size(), to.size());
  }
  for (const auto& item : from) {
    const at::Tensor* own = to.find(item.key());
    if (own == nullptr || own->sizes() != item.value().sizes()) {
      fail(ErrorKind::usage, "'{}' of the model is {}, and {} with frames of the other size: its weights belong to one",
           item.key(), ops::shape_text(item.value().sizes()),
           own == nullptr ? std::string("missing") : ops::shape_text(own->sizes()));
    }
    at::Tensor(*own).copy_(item.value());
  }
}

}  // namespace

void change_frame_size(LoadedModel& loaded, int64_t height, int64_t width) {
  data::FrameFormat frames = loaded.recipe.frames;
  if (height == frames.height && width == frames.width) return;
  if (height < 1 || width < 1) fail(ErrorKind::usage, "frames must be at least 1 x 1, got {} x {}", height, width);
  const std::string obstacle = loaded.model->obstacle_to_other_sizes();
  if (!obstacle.empty()) {
    fail(ErrorKind::usage,
         "expected frames of {} x {}, which this model was trained on, got {} x {}: {}. Bring the frames to that size, "
         "or train a model on frames of the other",
         frames.height, frames.width, height, width, obstacle);
  }
  frames.height = height, frames.width = width;
  const auto model = models::make_model(loaded.recipe.model, frames);
  copy_values(loaded.model->named_parameters(), model->named_parameters());
  copy_values(loaded.model->named_buffers(), model->named_buffers());
  model->to(models::device_of(*loaded.model));
  model->eval();
  loaded.model = model;
  loaded.recipe.frames = frames;
}

}  // namespace convssm::run
