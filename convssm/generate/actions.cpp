// One rule for the context and for the frames to come.
#include "convssm/generate/actions.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/data/clips.h"

namespace convssm::generate {
namespace {

std::string kind_text(const data::ActionFormat& format) {
  if (format.maps > 0) return fmt::format("{} maps for each frame", format.maps);
  if (format.values > 0) return fmt::format("{} numbers for each frame", format.values);
  return fmt::format("whole numbers 0 to {}", format.count - 1);
}

void check_kind(const at::Tensor& known, const data::ActionFormat& format, const std::string& whose) {
  const int64_t values = known.dim() == 3 ? known.size(2) : 0, maps = known.dim() == 5 ? known.size(2) : 0;
  if (values == format.values && maps == format.maps) return;
  fail(ErrorKind::data, "{} has actions of {}, this model takes {}", whose,
       maps > 0     ? fmt::format("{} maps", maps)
       : values > 0 ? fmt::format("{} numbers", values)
                    : std::string("one whole number"),
       kind_text(format));
}

void check_masks(const at::Tensor& known, const ActionRules& rules, const std::string& whose) {
  if (rules.mask_learned || !rules.format.matter()) return;
  const at::Tensor gone = known.is_floating_point() ? known.isnan().flatten(2).any(2) : known < 0;  // [N,T]
  const int64_t masked = gone.sum().item<int64_t>();
  if (masked == 0) return;
  log_warning("{} has {} masked action{}, and this model never learned without (train.action_dropout is 0)", whose,
              masked, masked == 1 ? "" : "s");
}

}  // namespace

at::Tensor complete_actions(const at::Tensor& known, int64_t rows, int64_t frames, const ActionRules& rules,
                            const std::string& whose, const std::string& hint) {
  if (rules.format.none() || (!known.defined() && !rules.format.matter())) return {};
  if (known.defined()) check_kind(known, rules.format, whose);
  const int64_t given = known.defined() ? std::min(known.size(1), frames) : 0;
  if (given > 0) check_masks(known.slice(1, 0, given), rules, whose);
  if (given == frames) return known.defined() ? known.slice(1, 0, frames) : known;
  if (!rules.format.matter())
    return at::constant_pad_nd(known.slice(1, 0, given), {0, frames - given});  // the only one
  const std::string found = given == 0 ? "no actions" : fmt::format("actions for {} of {} frames", given, frames);
  if (!rules.mask_learned) {
    fail(ErrorKind::data,
         "{} has {}. This model learned from actions ({}) and never without (train.action_dropout is 0). {}", whose,
         found, kind_text(rules.format), hint);
  }
  log_info("{} has {}: the others are masked, which train.action_dropout has taught this model", whose, found);
  const at::Tensor rest = masked_actions(rows, frames - given, rules.format);
  return given == 0 ? rest : at::cat({known.slice(1, 0, given), rest}, 1);
}

at::Tensor masked_actions(int64_t rows, int64_t frames, const data::ActionFormat& format) {
  if (format.maps > 0) {
    return data::masked_like(at::empty({rows, frames, format.maps, format.height, format.width}, at::kFloat));
  }
  return data::masked_like(format.values > 0 ? at::empty({rows, frames, format.values}, at::kFloat)
                                             : at::empty({rows, frames}, at::kLong));
}

at::Tensor for_each_clip(const at::Tensor& actions, int64_t clips, const std::string& whose) {
  if (actions.size(0) == clips) return actions;
  if (actions.size(0) == 1) return actions.repeat_interleave(clips, 0);
  fail(ErrorKind::data, "{} has actions of {} clips, there are {}; expected those of one clip, for all, or of each",
       whose, actions.size(0), clips);
}

}  // namespace convssm::generate
