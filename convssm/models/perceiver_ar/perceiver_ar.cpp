// Windows of a batch have different lengths: the clips go through the cross attention one by one, without padding, and together
// through all the rest. Positions are counted back from the end of each window, as only differences matter to what turns.
#include "convssm/models/perceiver_ar/perceiver_ar.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/models/frame_input.h"
#include "convssm/nn/attention.h"
#include "convssm/nn/recompute.h"
#include "convssm/ops/check.h"

namespace convssm::models {
namespace {

constexpr int64_t kMostTelling = 64;

}  // namespace

PerceiverAr::PerceiverAr(const PerceiverArOptions& options)
    : options_(options), sight_{options.context, options.latents} {
  const Stream stream(options.seed, "perceiver_ar");
  const TokenizerPart tokenizer = make_tokenizer(options.codes.tokenizer);
  if (tokenizer) register_frozen("tokenizer", tokenizer.module);
  codes_ = CodeInput(*this, options.codes, tokenizer, stream);
  const data::CodeFormat grid = codes_.format();
  options_.network.codes = grid.count, options_.network.rows = grid.height, options_.network.columns = grid.width;
  action_input_ = ActionInput(*this, options.actions, stream);
  network_ = register_module("network", perceiver_ar::Network(options_.network, stream.split("network")));
}

void PerceiverAr::check(const char* operation, const Clips& clips) const {
  check_untimed(operation, clips);
  action_input_.check(operation, clips.actions);
}

void PerceiverAr::check_data(const data::DataFormat& data) const {
  codes_.check_data(data);
  action_input_.check_data(data.actions);
}

// From half of them on, a further frame is seen but not learned.
int64_t PerceiverAr::telling_frames() const {
  const int64_t each = options_.network.tokens_per_frame(), learned = (options_.latents + each - 1) / each;
  return std::clamp(2 * learned, Model::telling_frames(), kMostTelling);
}

at::Tensor PerceiverAr::embedded(const at::Tensor& actions, int64_t N) const {
  return action_input_.embed(actions, N, network_->parameters()[0].options().requires_grad(false));
}

LossOutput PerceiverAr::loss(const Clips& clips, const LossContext& context, const State&) {
  const int64_t codes = clips.frames() * options_.network.tokens_per_frame(), least = std::min(options_.latents, codes);
  std::vector<int64_t> ends(static_cast<size_t>(clips.batch()), codes);
  Stream stream = context.random.split("windows");
  if (context.step + 1 < context.steps) {
    for (int64_t& end : ends)
      end = least + static_cast<int64_t>(stream.below(static_cast<uint64_t>(codes - least + 1)));
  }
  const double rate = is_training() ? options_.dropout : 0;
  return loss_of(clips, ends, {rate, context.random.split("dropout")});
}

LossOutput PerceiverAr::loss_of(const Clips& clips, const std::vector<int64_t>& ends) {
  return loss_of(clips, ends, perceiver_ar::Dropout{});
}

LossOutput PerceiverAr::loss_of(const Clips& clips, const std::vector<int64_t>& ends,
                                const perceiver_ar::Dropout& dropout) {
  check("loss", clips);
  const at::Tensor codes = codes_.codes_of("loss", clips).flatten(2);  // [B,T,h*w]
  const int64_t B = codes.size(0), T = codes.size(1);
  at::Tensor rows = embedded(clips.actions.defined() ? clips.actions.flatten(0, 1) : clips.actions, B * T);
  if (rows.defined()) rows = rows.unflatten(0, {B, T});
  const at::Tensor tokens = codes.flatten(1), logits = window_logits(tokens, rows, ends, dropout);
  const int64_t m = logits.size(0) / B;
  std::vector<at::Tensor> said;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t end = ends[static_cast<size_t>(b)];
    said.push_back(tokens[b].slice(0, end - m, end));
  }
  const at::Tensor log_sum = logits.logsumexp(1),
                   each = log_sum - logits.gather(1, at::cat(said).unsqueeze(1)).squeeze(1);
  const at::Tensor nats = each.mean(), square = log_sum.square().mean();
  return {nats + options_.log_sum_weight * square,
          {{"nats_per_code", nats.detach()}, {"log_sum_square", square.detach()}},
          {}};
}

at::Tensor PerceiverAr::window_logits(const at::Tensor& tokens, const at::Tensor& actions,
                                      const std::vector<int64_t>& ends, const perceiver_ar::Dropout& dropout) {
  const int64_t B = tokens.size(0), L = tokens.size(1), m = std::min(options_.latents, L);
  const at::Tensor written =
      at::cat({at::full({B, 1}, network_->start_token(), tokens.options()), tokens.slice(1, 0, L - 1)}, 1);
  const at::Tensor positions = at::arange(L, tokens.options());
  const at::Tensor frames = positions.div(options_.network.tokens_per_frame(), "floor");
  int64_t longest = 0;
  std::vector<at::Tensor> inputs, last;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t end = ends[static_cast<size_t>(b)], begin = std::max<int64_t>(end - options_.context, 0);
    ops::require("loss", end >= m && end <= L, "a window must end after {} to {} codes, got {}", m, L, end);
    const auto part = [&](const at::Tensor& x) { return x.slice(0, begin, end); };
    const at::Tensor of_frames = actions.defined() ? actions[b].index_select(0, part(frames)) : actions;
    inputs.push_back(network_->embed(part(written[b]), part(positions), of_frames));
    last.push_back(inputs.back().slice(0, end - begin - m));
    longest = std::max(longest, end - begin);
  }
  const perceiver_ar::Turn turn = network_->turn(1 - longest, longest);
  const std::shared_ptr<perceiver_ar::CrossBlockImpl> cross = network_->cross().ptr();
  const auto look_back = [&](const at::Tensor& queries) {
    std::vector<at::Tensor> taken;
    for (int64_t b = 0; b < B; ++b) {
      const at::Tensor& own = inputs[static_cast<size_t>(b)];
      const perceiver_ar::Turn own_turn = turn.slice(longest - own.size(0), longest);
      const auto run = [cross, own_turn](const nn::Tensors& in) {
        const perceiver_ar::KeysValues seen = cross->keys_values(in[1], 1, own_turn);
        return nn::Tensors{nn::attend_frames(in[0], seen.keys, seen.values, 1, 0)};
      };
      taken.push_back(nn::recompute({cross.get()}, {queries.narrow(0, b, 1), own}, run)[0]);
    }
    return at::cat(taken);
  };
  const auto each_other = [](int64_t, const at::Tensor& queries, const perceiver_ar::KeysValues& own) {
    return nn::attend_frames(queries, own.keys, own.values, 1, 0);
  };
  return network_->forward(at::cat(last), B, turn.slice(longest - m, longest), look_back, each_other, dropout);
}

std::string PerceiverAr::description() const {
  const data::CodeFormat grid = codes_.format();
  return fmt::format("Perceiver AR, {} x {} of {} codes, {} latents that see {}, {:.2f}M parameters{}", grid.height,
                     grid.width, grid.count, options_.latents, options_.context,
                     static_cast<double>(learned_count(*this)) * 1e-6,
                     codes_.has_frames() ? " beside its tokenizer" : "");
}

}  // namespace convssm::models
