// The `train` section of a config: everything about the training of a model but the model and the data.
// What concerns an optimizer stands at the top level for all players of the model, and under `players.<name>` for one:
//   train: {lr: 1e-3, clip_norm: 1, players: {discriminator: {lr: 2e-4, beta1: 0.5, start: 10000}}}
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace convssm::train {

// Learning rate over the steps, counted from 0: linear from 0 over the warm-up, then
//   cosine        half a cosine to 0 at the last step (the paper's)
//   cosine_short  the same, but it ends `warmup` steps before the last one and stays 0 (what the public code does)
//   constant
enum class Schedule { cosine, cosine_short, constant };

// chunk_frames: chosen by the memory there is. warmup: by the number of steps.
inline constexpr int64_t kAutomatic = -1;

// How one player learns (models/model.h): AdamW, its schedule, and what happens around it.
struct PlayerOptions {
  double lr = 1e-3;
  int64_t warmup = kAutomatic;  // in steps; automatic: a tenth of all, at most 5000
  Schedule schedule = Schedule::cosine;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 1e-5;
  double clip_norm = 0;  // the gradient is scaled down to this norm; 0: never
  int64_t start = 0;     // the first step in which it learns; its schedule is counted from there
  double ema = 0;        // decay of a running average of the weights, which forecasts then use; 0: none
};

struct TrainOptions {
  int64_t steps = 1000;
  int64_t batch = 8;                  // clips per update
  int64_t frames = 30;                // of a clip; 1 for models of single frames
  bool carry_state = false;           // clips follow each other along recordings, and states go on from step to step
  int64_t chunk_frames = kAutomatic;  // frames that are in memory at once, with exact gradients; 0: all
  int64_t accumulate = 1;             // a batch is run in this many micro-batches, whose gradients are summed
  bool recompute = false;             // layers keep only their inputs and are run again for their gradients
  std::string memory = "auto";        // what a step may take, as "12GiB"; auto: two thirds of what is available
  PlayerOptions optimizer;            // of every player
  std::map<std::string, PlayerOptions> players;  // of those that differ
  double action_dropout = 0;                     // probability that a clip loses its actions
  double self_feed = 0;          // probability that a frame goes in as the model forecasts it, after half of the steps
  int64_t self_feed_passes = 1;  // more: forecasts of forecasts
  int64_t workers = 1;           // threads that make batches ahead of time
  int64_t log_interval = 100, save_interval = 2000, sample_interval = 2000;  // in steps; 0: never (save: at the end)
  int64_t keep_last = 3, keep_every = 20000;                                 // checkpoints that stay
  int64_t sample_clips = 8, sample_context = 0, sample_frames = 0;  // of validation; 0: a third of a clip, the rest

  uint64_t memory_bytes() const;                               // 0: auto
  const PlayerOptions& player(const std::string& name) const;  // its own or those of all

  static TrainOptions from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;  // all of them; of a player what differs, so that it inherits the rest when read
};

// Of a player in a training of `steps` steps.
int64_t warmup_steps(const PlayerOptions& options, int64_t steps);

// At a step of the whole training, `steps` long. 0 before the player's start.
double learning_rate(const PlayerOptions& options, int64_t step, int64_t steps);

}  // namespace convssm::train
