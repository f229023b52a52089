// The contract of everything that is trained. A model turns clips into losses, one for each of its players, and says what
// else it can do: forecast (models/forecaster.h), tokenize (models/tokenizer.h). It knows no files, no clock, no log, and
// draws random numbers only from the stream that it is handed.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convssm/base/random.h"
#include "convssm/cores/state.h"
#include "convssm/data/dataset.h"

namespace convssm::models {

using cores::State;
using data::Clips;

class Forecaster;
class Tokenizer;
struct TokenizerPart;

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// One who learns: parameters that an optimizer of their own moves, by a loss of their own. Generator and discriminator
// are two; most models are one.
struct Player {
  std::string name;
  NamedTensors parameters;  // by their names in the model
  int64_t start = 0;        // the first step in which it learns, unless the options of a training say later
};

// Where a loss is asked for.
struct LossContext {
  std::string player = "model";
  int64_t step = 0, steps = 1;  // of training, for weights that change over it
  Stream random = Stream(0);    // a function of seed, step, player and micro-batch
};

struct LossOutput {
  at::Tensor loss;     // scalar, a mean over the predicted frames
  NamedTensors parts;  // scalars for the log by name, cut from the graph
  State state;         // after the last input frame

  std::string warning = {};  // something that a person should know; a training says it once
};

class Model : public torch::nn::Module {
 public:
  // Who learns, in the order of their updates within a step. By default one player, "model", with all parameters that
  // require gradients. A parameter of no player is frozen.
  virtual std::vector<Player> players() const;

  // The loss of context.player. With `start` the clips go on where others ended. Teacher forced models take frames
  // 0..T-2 in and predict 1..T-1, so the chunks of a clip overlap by one frame.
  virtual LossOutput loss(const Clips& clips, const LossContext& context, const State& start = {}) = 0;

  // How many values the loss of these clips is the mean of, up to a factor that all clips share: chunks of a clip and parts
  // of a batch are weighted by it. By default their predicted frames.
  virtual double loss_terms(const Clips& clips) const;

  // "" if the loss of a clip is the mean of the losses of its chunks, weighted by loss_terms(): no noise is
  // drawn, and states carry everything across a cut. Otherwise why not. Training runs such a model chunk by chunk in
  // bounded memory, each chunk twice.
  virtual std::string obstacle_to_chunks() const { return "its loss is defined on whole clips"; }

  // "" if a training may go on from the state that a loss ends with (train.carry_state): with the frames that follow it gives
  // the loss of both together. Otherwise why not.
  virtual std::string obstacle_to_carrying() const { return obstacle_to_chunks(); }

  // "" if frames of other sizes than those that it was made for can be run with the same parameters; otherwise why not.
  virtual std::string obstacle_to_other_sizes() const { return "what it has learned belongs to frames of one size"; }

  // Error(usage) if clips like these cannot be trained on; says which option would have to change.
  virtual void check_data(const data::DataFormat& data) const;

  // Likewise for clips of this many frames (train.frames). A loss takes shorter ones all the same: memory is measured so.
  virtual void check_length(int64_t) const {}

  // Frames of a clip that shows, beside one of half the length, what each further frame takes of memory.
  virtual int64_t telling_frames() const { return 8; }
  virtual int64_t loss_frames() const { return 0; }  // that a loss takes of a clip, however long it is; 0: all
  virtual int64_t given_frames() { return as_forecaster() != nullptr ? 1 : 0; }  // of a clip, that have no loss
  virtual double pair_bytes() const { return 0; }  // memory that training keeps per pair of frames and clip (attention)

  virtual Forecaster* as_forecaster() { return nullptr; }
  virtual Tokenizer* as_tokenizer() { return nullptr; }

  // The tokenizer with what it is made of, for models of codes. By default the whole model, if it is one.
  virtual TokenizerPart tokenizer_part();

  virtual std::string description() const = 0;           // "pixel predictor, convs5 core, 21.7M parameters"
  virtual std::string label() const { return "model"; }  // a word for tables: "convs5"

  // Frozen parts stay in eval mode.
  void train(bool on = true) override;

 protected:
  // Registers a part that does not learn, such as the tokenizer of a code model: it belongs to no player, stays in eval
  // mode, and is stored in the model's own file, so that one file runs.
  template <typename Part>
  std::shared_ptr<Part> register_frozen(const std::string& name, std::shared_ptr<Part> part) {
    register_module(name, part);
    freeze(*part);
    frozen_.push_back(part);
    return part;
  }

 private:
  static void freeze(torch::nn::Module& part);

  std::vector<std::shared_ptr<torch::nn::Module>> frozen_;
};

// Where the parameters are, and with them everything that the model computes.
at::Device device_of(const torch::nn::Module& module);

// The number of values of all parameters: those that learn and those of frozen parts, as a model file holds them.
int64_t parameter_count(const torch::nn::Module& module);

// Of the parameters of its players alone.
int64_t learned_count(const Model& model);

// The forecaster of a model; Error(usage) that names the model if it has none.
Forecaster& forecaster_of(Model& model);

// In eval mode while it lives.
class EvalMode {
 public:
  explicit EvalMode(Model& model) : model_(model), training_(model.is_training()) { model.eval(); }
  ~EvalMode() { model_.train(training_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  Model& model_;
  bool training_;
};

}  // namespace convssm::models
