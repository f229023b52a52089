// AdamW (ops/adamw.h) on the parameters of one player, and the running average of its weights; both are arrays of a
// checkpoint.
#pragma once

#include <string>
#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/models/model.h"
#include "convssm/train/options.h"

namespace convssm::train {

// How a player learns: as the options say, and not before its own start.
PlayerOptions options_of(const models::Player& player, const TrainOptions& options);

class Optimizer {
 public:
  Optimizer(const models::Player& player, const PlayerOptions& options);

  const std::string& player() const { return player_; }
  const PlayerOptions& options() const { return options_; }

  void clear_gradients();
  double gradient_norm() const;  // of all gradients together; infinity or NaN if one of them holds such a value

  // Parameters without a gradient stay as they are. `scale` multiplies the gradients.
  void update(double lr, double scale = 1);

  // The weights beside their averages; nothing without `ema`.
  std::vector<std::pair<at::Tensor, at::Tensor>> averages() const;

  // `optimizer.<parameter>.m` and `.v`, `average.<parameter>`, and `optimizer.updates` (`optimizer.updates.<player>`
  // unless it is called "model").
  std::vector<io::LazyArray> arrays() const;
  void load(const io::SafetensorsFile& file);

 private:
  struct Slot {
    std::string name;
    at::Tensor parameter, m, v;  // moments are undefined before the first update
    at::Tensor average;          // undefined without `ema`
  };
  std::string updates_name() const;

  std::string player_;
  PlayerOptions options_;
  std::vector<Slot> slots_;
  int64_t updates_ = 0;
};

// The averaged weights are in the model while it lives, the trained ones where the averages were. They change places block
// by block through one small buffer: everything that needs memory is made before the first value moves, and what has moved
// goes back if the constructor fails.
class AveragedWeights {
 public:
  explicit AveragedWeights(const std::vector<Optimizer>& optimizers);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  struct Block {
    at::Tensor weights, average, buffer;  // views of one shape
    void swap();
  };
  void put_back();

  std::vector<Block> blocks_;
  size_t swapped_ = 0;  // the first ones
};

// Only one player's parameters require gradients while it lives: what another player's loss says of the others is neither
// computed nor kept.
class OnlyLearner {
 public:
  OnlyLearner(models::Model& model, const models::Player& player);
  ~OnlyLearner();
  OnlyLearner(const OnlyLearner&) = delete;
  OnlyLearner& operator=(const OnlyLearner&) = delete;

 private:
  std::vector<at::Tensor> paused_;
};

// The name of the first parameter whose gradient holds NaN or infinity; "" if there is none.
std::string first_bad_gradient(const models::Model& model);

// The same for the parameters themselves.
std::string first_bad_parameter(const models::Model& model);

}  // namespace convssm::train
