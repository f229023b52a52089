// Perceiver AR (Hawthorne et al. 2022, arXiv 2202.07765) on the codes of a tokenizer: a clip is one sequence of codes, frame after
// frame, row by row, behind a start token. Each code is drawn from what a network says (perceiver_ar/network.h) whose last
// positions look once at the whole history and then at each other.
//   E_p = table[code p-1] + embedding(action of the frame of code p) (+ positions),   logits_p = network(E_0..E_p)_p
// Codes have a table of the model's own; the tokenizer's features are not used.
// Training takes, of each clip, one window that ends anywhere from the latents-th code on; its last `latents` positions are learned:
//   loss = mean over them of  cross-entropy + log_sum_weight (log sum exp of the logits)^2
// (published as a sum). A code's forecast is a function of its number and of what it sees (perceiver_ar/past.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/models/action_input.h"
#include "convssm/models/codes/code_input.h"
#include "convssm/models/codes/code_loss.h"
#include "convssm/models/forecaster.h"
#include "convssm/models/model.h"
#include "convssm/models/perceiver_ar/network.h"
#include "convssm/models/perceiver_ar/past.h"

namespace convssm::models {

struct PerceiverArOptions {
  CodeInputOptions codes;
  ActionOptions actions;  // embedded in as many features as the network has
  perceiver_ar::NetworkOptions network;
  int64_t context = 76800;  // N: codes that are in sight
  int64_t latents = 1024;   // Z: positions that are learned in a step, and that look at each other
  double dropout = 0.1;
  double log_sum_weight = 1e-4;
  SamplingOptions sampling;
  uint64_t seed = 0;  // of the initial values

  PerceiverArOptions() {
    actions.actions = 0;
    codes.embeds = false;
  }

  // From the `model` section of a config, without its `name`. The grid of codes is the tokenizer's, or that of `codebook`.
  static PerceiverArOptions from_json(const nlohmann::json& json);
};

class PerceiverAr : public Model, public Forecaster {
 public:
  explicit PerceiverAr(const PerceiverArOptions& options);

  // The last step of a training takes all windows at the ends of their clips, where they are longest: memory is measured by it.
  LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) override;

  // With windows that end before these codes, one for each clip, and without dropout.
  LossOutput loss_of(const Clips& clips, const std::vector<int64_t>& ends);

  std::string obstacle_to_chunks() const override { return "its windows are drawn from whole clips"; }
  std::string obstacle_to_other_sizes() const override {
    return "it sees them as a fixed number of codes of a tokenizer";
  }
  void check_data(const data::DataFormat& data) const override;
  int64_t telling_frames() const override;
  int64_t given_frames() override { return 0; }
  Forecaster* as_forecaster() override { return codes_.has_frames() ? this : nullptr; }
  Tokenizer* as_tokenizer() override { return codes_.tokenizer().tokenizer; }
  TokenizerPart tokenizer_part() override { return codes_.tokenizer(); }
  std::string description() const override;
  std::string label() const override { return "perceiver_ar"; }

  State start(const Clips& context, const Seeds& seeds) override;
  Forecast next(const State& state, const at::Tensor& action) override;
  State observe(const State& state, const at::Tensor& frame, const at::Tensor& action) override;
  data::ActionFormat actions() const override { return action_input_.format(); }
  bool draws() const override { return options_.sampling.draws(); }
  int64_t clips_in(const State& state) const override;

 protected:
  // Code `number` of the sequence, [B], by its logits [B,codes]; `random` [B,2] has the seeds of the clips. The numbers that are
  // drawn depend on seed and number alone.
  virtual at::Tensor draw_code(const at::Tensor& random, int64_t number, const at::Tensor& logits) const;

 private:
  double* temperature_setting() override { return options_.sampling.temperature_setting(); }
  struct Past;

  void check(const char* operation, const Clips& clips) const;
  at::Tensor embedded(const at::Tensor& actions, int64_t N) const;  // [N,..] -> [N,D]; undefined: there are none
  LossOutput loss_of(const Clips& clips, const std::vector<int64_t>& ends, const perceiver_ar::Dropout& dropout);
  at::Tensor window_logits(const at::Tensor& codes, const at::Tensor& actions, const std::vector<int64_t>& ends,
                           const perceiver_ar::Dropout& dropout);

  at::Tensor embedded_range(const Past& past, int64_t begin, int64_t end) const;
  at::Tensor latents(Past& past, const at::Tensor& embedded, const perceiver_ar::Turn& turn);
  void rebuild(Past& past, int64_t end);
  void take_in(Past& past, int64_t begin);
  void add_frame(Past& past, const at::Tensor& codes, const at::Tensor& action) const;
  at::Tensor draw_frame(Past& past, const at::Tensor& action);
  int64_t frames_kept() const;  // of codes, in a state
  Past past_of(const State& state) const;
  State state_of(const Past& past) const;

  PerceiverArOptions options_;
  CodeInput codes_;
  ActionInput action_input_;
  perceiver_ar::Sight sight_;
  perceiver_ar::Network network_{nullptr};
};

}  // namespace convssm::models
