// The tensors belong to the owner, under the one name `actions`, so that files know no class of its parts.
#include "convssm/models/action_input.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convssm/ops/check.h"
#include "convssm/ssm/initializers.h"

namespace convssm::models {

void ActionOptions::read_from(OptionReader& read) {
  read("actions", actions);
  read("action_values", action_values);
  read("action_maps", action_maps);
  read("action_features", action_features);
  if (action_maps != 0 && !takes_maps) {
    fail(ErrorKind::usage,
         "[model] action_maps is {}, and this model takes no maps: model.name=pixel does; others take numbers "
         "(model.action_values)",
         action_maps);
  }
}

ActionInput::ActionInput(torch::nn::Module& owner, const ActionOptions& options, const Stream& stream)
    : options_(options) {
  ops::require("model", options.actions >= 0 && options.action_features > 0,
               "actions must not be negative and action_features positive, got {} and {}", options.actions,
               options.action_features);
  ops::require("model", options.action_values >= 0 && (options.action_values == 0 || options.actions <= 1),
               "take either actions (whole numbers) or action_values (numbers), got {} and {}", options.actions,
               options.action_values);
  ops::require("model", options.action_maps >= 0 && (options.action_maps == 0 || options.action_values == 0),
               "take either action_values (numbers) or action_maps (numbers for each pixel), got {} and {}",
               options.action_values, options.action_maps);
  ops::require("model", options.action_maps == 0 || options.actions <= 1,
               "take either actions (whole numbers) or action_maps, got {} and {}", options.actions,
               options.action_maps);
  if (options.action_maps > 0) return;
  if (options.action_values > 0) {
    layer_ = owner.register_module(
        "actions", nn::Dense(options.action_values + 1, options.action_features, stream.split("actions")));
  } else if (options.actions > 0) {
    Stream own = stream.split("actions");
    const double std = 1 / std::sqrt(static_cast<double>(options.action_features));
    table_ = owner.register_parameter("actions", ssm::normal({options.actions + 1, options.action_features}, std, own));
  }
}

int64_t ActionInput::features() const { return table_.defined() || layer_ ? options_.action_features : 0; }

data::ActionFormat ActionInput::format() const {
  if (options_.action_maps > 0) return {.maps = options_.action_maps};
  return options_.action_values > 0 ? data::ActionFormat{0, options_.action_values}
                                    : data::ActionFormat{options_.actions};
}

void ActionInput::check_below(const char* operation, const at::Tensor& actions) const {
  const int64_t largest = actions.defined() && actions.numel() > 0 ? actions.max().item<int64_t>() : 0;
  ops::require(operation, largest < options_.actions, "actions must be below model.actions = {}, got {}",
               options_.actions, largest);
}

at::Tensor ActionInput::embed(const at::Tensor& actions, int64_t N, const at::TensorOptions& like) const {
  if (features() == 0) return {};
  if (layer_) {
    if (!actions.defined()) return layer_(at::zeros({N, options_.action_values + 1}, like));
    const at::Tensor masked = at::isnan(actions).any(1, true);
    const at::Tensor values = at::where(masked, at::zeros({}, like), actions.to(like));
    return layer_(at::cat({values, masked.to(like)}, 1));
  }
  check_below("model", actions);
  const at::Tensor rows =
      actions.defined() ? at::where(actions < 0, options_.actions, actions) : at::zeros({N}, like.dtype(at::kLong));
  return at::embedding(table_, rows);
}

at::Tensor ActionInput::beside(const at::Tensor& frames, const at::Tensor& actions) const {
  if (features() == 0) return frames;
  const int64_t N = frames.size(0);
  const at::Tensor embedded = embed(actions, N, frames.options()).unsqueeze(-1).unsqueeze(-1);
  return at::cat({frames, embedded.expand({N, options_.action_features, frames.size(2), frames.size(3)})}, 1);
}

void ActionInput::check(const char* operation, const at::Tensor& actions, int64_t height, int64_t width) const {
  const int64_t maps = options_.action_maps, values = options_.action_values;
  if (!actions.defined() || (features() == 0 && maps == 0)) return;
  const bool fits =
      maps > 0 ? actions.dim() == 5 && actions.size(2) == maps && actions.size(3) == height && actions.size(4) == width
      : values > 0 ? actions.dim() == 3 && actions.size(2) == values
                   : actions.dim() == 2;
  ops::require(operation, fits, "actions must be {}, got {}",
               maps > 0     ? fmt::format("maps [B,T,{},{},{}], of the size of the frames", maps, height, width)
               : values > 0 ? fmt::format("[B,T,{}] numbers", values)
                            : std::string("[B,T] whole numbers"),
               ops::shape_text(actions.sizes()));
}

void ActionInput::check_data(const data::ActionFormat& actions) const {
  if (format().matter() && actions.none()) {
    fail(ErrorKind::usage,
         "the model takes actions (model.{}), the data has none; give it {}, or set model.actions=1 "
         "model.action_values=0 model.action_maps=0",
         options_.action_maps > 0     ? fmt::format("action_maps={}", options_.action_maps)
         : options_.action_values > 0 ? fmt::format("action_values={}", options_.action_values)
                                      : fmt::format("actions={}", options_.actions),
         options_.action_maps > 0 ? "maps of what is known in advance" : "an array of actions (data.actions_key)");
  }
  if (actions.maps > 0 && !options_.takes_maps) {
    fail(ErrorKind::usage,
         "the actions of the data are {} maps, which this model does not take: model.name=pixel does "
         "(model.action_maps={}); or leave them out of the data",
         actions.maps, actions.maps);
  }
  if (features() == 0 && options_.action_maps == 0) return;
  if (actions.maps != options_.action_maps) {
    fail(ErrorKind::usage, "the actions of the data are {} maps, the model takes {}; set model.action_maps={}",
         actions.maps, options_.action_maps, actions.maps);
  }
  if (table_.defined() && actions.count > options_.actions) {
    fail(ErrorKind::usage, "the data has {} actions, the model {}; set model.actions={} (or 0 to leave them out)",
         actions.count, options_.actions, actions.count);
  }
  if (actions.values == options_.action_values) return;
  fail(ErrorKind::usage, "the actions of the data are {} numbers, the model takes {}; set model.action_values={}",
       actions.values, options_.action_values, actions.values);
}

}  // namespace convssm::models
