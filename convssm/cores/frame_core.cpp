// Two adaptors: a 1x1 convolution in front of cores on frames; patches in front of and behind cores on tokens. A patch
// is flattened by reshape and permute and multiplied by the flattened kernel: a convolution whose stride is its width
// needs no more. The adaptor's own options are taken out before the core reads the rest.
#include "convssm/cores/frame_core.h"

#include <ATen/ATen.h>

#include <array>
#include <nlohmann/json.hpp>

#include "convssm/cores/registry.h"
#include "convssm/nn/frame_plan.h"
#include "convssm/nn/modules.h"
#include "convssm/ops/check.h"
#include "convssm/ops/dense.h"
#include "convssm/ssm/initializers.h"

namespace convssm::cores {
namespace {

using nlohmann::json;
using ops::require;

int64_t features_of(const json& options) {
  const bool given = options.contains("features") && options["features"].is_number_integer();
  require("frame_core", given && options["features"] > 0, "option 'features' must be a positive whole number, got {}",
          options.contains("features") ? options["features"].dump() : "none");
  return options["features"];
}

// Registers the core and passes on what it says of itself.
class WithCore : public FrameCore {
 public:
  WithCore(const FrameShape& input, std::shared_ptr<Core> core)
      : input_(input), core_(register_module("core", std::move(core))) {}
  int64_t in_channels() const override { return input_.channels; }
  bool constant_state() const override { return core_->constant_state(); }
  double pair_bytes() const override { return core_->pair_bytes(); }
  int64_t telling_frames() const override { return core_->telling_frames(); }
  bool draws_noise() const override { return core_->draws_noise(); }

 protected:
  FrameShape input_;
  std::shared_ptr<Core> core_;
};

// Parameters: `input` (1x1 convolution) and those of the core.
class OnFrames : public WithCore {
 public:
  OnFrames(const FrameShape& input, const json& options, std::shared_ptr<Core> core, const Stream& stream)
      : WithCore(input, std::move(core)), features_(features_of(options)) {
    dense_ = register_module("input", nn::Dense(input.channels, features_, stream.split("input")));
  }
  int64_t out_channels() const override { return features_; }
  std::string obstacle_to_other_sizes() const override { return ""; }

  CoreOutput forward(const at::Tensor& x, const State& state, const Timing& timing) override {
    ops::require_dims("frame_core", "x", x, 5, "[L,B,C,H,W]");
    require("frame_core", x.size(2) == input_.channels, "x must be [L,B,{},H,W], got {}", input_.channels,
            ops::shape_text(x.sizes()));
    const int64_t L = x.size(0), B = x.size(1);
    return core_->forward(dense_(x.flatten(0, 1)).unflatten(0, {L, B}), state, timing);
  }

  bool has_plan() const override { return core_->has_plan(); }
  nn::Buffer plan(nn::FramePlan& plan, const nn::Buffer& x) override { return plan_with_rows(plan, x, {}, {}); }

  // What the rows add to the output of the 1x1 convolution is computed here, once.
  nn::Buffer plan_with_rows(nn::FramePlan& plan, const nn::Buffer& x, const at::Tensor& rows,
                            const at::Tensor& choice) override {
    const nn::Buffer y = plan.conv(x, dense_->weight.narrow(1, 0, x.channels), dense_->bias);
    if (rows.defined()) plan.add_row(y, at::matmul(rows, dense_->weight.slice(1, x.channels).t()), choice);
    return core_->plan(plan, y);
  }

 private:
  int64_t features_;
  nn::Dense dense_{nullptr};
};

struct Patches {
  int64_t height = 0, width = 0;  // of a patch
  int64_t rows = 0, columns = 0;  // of patches in a frame
};

// Parameters: `z_proj` [D,C_in,p,q], `z_unproj` [D,C_out,p,q] and those of the core.
class OnTokens : public WithCore {
 public:
  OnTokens(const FrameShape& input, const Patches& patches, int64_t features, int64_t out, const CoreInfo& info,
           const json& options, const Stream& stream)
      : WithCore(input, info.make(options)), name_(info.name), patches_(patches), out_(out) {
    const int64_t area = patches.height * patches.width, p = patches.height, q = patches.width;
    Stream proj = stream.split("z_proj"), unproj = stream.split("z_unproj");
    z_proj_ =
        register_parameter("z_proj", ssm::lecun_normal({features, input.channels, p, q}, input.channels * area, proj));
    z_unproj_ = register_parameter("z_unproj", ssm::lecun_normal({features, out, p, q}, features * area, unproj));
  }
  int64_t out_channels() const override { return out_; }

  // A patch is as large as its kernels, by default as the frame; a core of several tokens has a first frame of as many.
  std::string obstacle_to_other_sizes() const override {
    return fmt::format(
        "the core {} sees {}x{} features as {} token{}, and 'patch' ties its weights to that size; cores on frames, "
        "such as convs5, take any",
        name_, input_.height, input_.width, patches_.rows * patches_.columns,
        patches_.rows * patches_.columns == 1 ? "" : "s");
  }

  CoreOutput forward(const at::Tensor& x, const State& state, const Timing& timing) override {
    ops::require_dims("frame_core", "x", x, 5, "[L,B,C,H,W]");
    require("frame_core", x.sizes().slice(2) == at::IntArrayRef({input_.channels, input_.height, input_.width}),
            "x must be [L,B,{},{},{}], got {}", input_.channels, input_.height, input_.width,
            ops::shape_text(x.sizes()));
    ops::require_like("frame_core", "x", x, z_proj_);
    CoreOutput out = core_->forward(compress(x), state, timing);
    return {expand(out.y, x.size(0), x.size(1)), std::move(out.state)};
  }

 private:
  // [L,B,C,H,W] -> [L,B,D] or, with several tokens, [L,B,D,h,w].
  at::Tensor compress(const at::Tensor& x) const {
    const auto [p, q, h, w] = patches_;
    const int64_t L = x.size(0), B = x.size(1), C = x.size(2), D = z_proj_.size(0);
    const at::Tensor rows =
        x.reshape({L * B, C, h, p, w, q}).permute({0, 2, 4, 1, 3, 5}).reshape({L * B * h * w, C * p * q});
    const at::Tensor tokens = ops::dense(rows, z_proj_.flatten(1));
    if (h * w == 1) return tokens.view({L, B, D});
    return tokens.view({L, B, h, w, D}).permute({0, 1, 4, 2, 3});
  }

  at::Tensor expand(const at::Tensor& y, int64_t L, int64_t B) const {
    const auto [p, q, h, w] = patches_;
    const int64_t N = L * B, D = z_unproj_.size(0);
    const at::Tensor tokens = y.reshape({N, D, h * w}).transpose(1, 2).reshape({N * h * w, D});
    const at::Tensor rows = ops::dense(tokens, z_unproj_.flatten(1).t()).view({N, h, w, out_, p, q});
    return rows.permute({0, 1, 4, 2, 5, 3}).reshape({L, B, h * p, w * q, out_}).permute({0, 1, 4, 2, 3});
  }

  std::string name_;  // of the core
  Patches patches_;
  int64_t out_;
  at::Tensor z_proj_, z_unproj_;
};

// Takes the adaptor's options out of `options`.
std::array<int64_t, 2> take_patch(json& options, const FrameShape& input) {
  if (!options.contains("patch")) return {input.height, input.width};
  const json patch = options["patch"];
  options.erase("patch");
  const auto positive = [](const json& x) { return x.is_number_integer() && x > 0; };
  if (positive(patch)) return {patch, patch};
  const bool pair = patch.is_array() && patch.size() == 2 && positive(patch[0]) && positive(patch[1]);
  require("frame_core", pair, "option 'patch' must be a positive whole number or [height,width], got {}", patch.dump());
  return {patch[0], patch[1]};
}

int64_t take_out_features(json& options) {
  if (!options.contains("out_features")) return 256;
  const json out = options["out_features"];
  options.erase("out_features");
  require("frame_core", out.is_number_integer() && out > 0,
          "option 'out_features' must be a positive whole number, got {}", out.dump());
  return out;
}

std::shared_ptr<FrameCore> around_tokens(const CoreInfo& info, json options, const FrameShape& input,
                                         const Stream& stream) {
  const auto [p, q] = take_patch(options, input);
  const int64_t out = take_out_features(options);
  require("frame_core", input.height % p == 0 && input.width % q == 0,
          "frames must be whole patches, got frames of {}x{} and patches of {}x{}; set 'patch' to a divisor",
          input.height, input.width, p, q);
  const Patches patches{p, q, input.height / p, input.width / q};
  const json tokens{patches.rows, patches.columns};
  if (info.many_tokens) {
    require("frame_core", !options.contains("tokens") || options["tokens"] == tokens,
            "option 'tokens' must be left out or be {} (frames of {}x{}, patches of {}x{}), got {}", tokens.dump(),
            input.height, input.width, p, q, options.contains("tokens") ? options["tokens"].dump() : "");
    options["tokens"] = tokens;
  }
  require("frame_core", info.many_tokens || patches.rows * patches.columns == 1,
          "{} takes one token per frame, got patches of {}x{} in frames of {}x{}; leave 'patch' out", info.name, p, q,
          input.height, input.width);
  const int64_t features = features_of(options);
  return std::make_shared<OnTokens>(input, patches, features, out, info, options, stream);
}

}  // namespace

void check_frame_core(const std::string& name, const json& options) {
  const CoreInfo& info = find_core(name);
  json own = options;
  if (info.on_tokens) take_patch(own, {}), take_out_features(own);
  if (info.check) info.check(own);
}

nn::Buffer FrameCore::plan_with_rows(nn::FramePlan& plan, const nn::Buffer& x, const at::Tensor&, const at::Tensor&) {
  return Core::plan(plan, x);
}

std::shared_ptr<FrameCore> make_frame_core(const std::string& name, const json& options, const FrameShape& input,
                                           uint64_t seed) {
  require("frame_core", options.is_object(), "options must be an object, got {}", options.dump());
  require("frame_core", input.channels > 0 && input.height > 0 && input.width > 0,
          "frames must have positive sizes, got {} channels, {}x{}", input.channels, input.height, input.width);
  const CoreInfo& info = find_core(name);
  json own = options;
  if (!own.contains("seed")) own["seed"] = seed;
  const Stream stream(seed, "frame_core");
  if (info.on_tokens) return around_tokens(info, own, input, stream);
  const std::shared_ptr<Core> core = info.make(own);
  const std::string obstacle = core->obstacle_to_frames(input.height, input.width);
  require("frame_core", obstacle.empty(), "{} cannot take the {}x{} features of a frame: {}", name, input.height,
          input.width, obstacle);
  return std::make_shared<OnFrames>(input, own, core, stream);
}

}  // namespace convssm::cores
