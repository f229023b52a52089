// One visitor's walk: the present, a ring of moments to go back to, in one branch or several side by side. A moment is a
// value that nothing changes, so a branch is a copy of pointers.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convssm/io/png.h"
#include "convssm/serve/recording.h"
#include "convssm/serve/scene.h"

namespace convssm::serve {

inline constexpr int64_t kMostBranches = 4;

struct Moment {
  models::State state;
  io::Image seen, truth;  // the model's frame, and what the world shows there; empty if there is no world
  worlds::Pose pose;
  int64_t number = 0;  // of the frame; 0 is the last one of the context
  uint64_t seed = 1;   // of the draws of its branch
};

struct WalkStart {
  int64_t number = 0;  // of the beginning
  uint64_t seed = 1;   // of the draws
};

class Visit {
 public:
  // Keeps up to `rewind` moments of a branch beside the present one, whose bytes are counted in `used`. Starts at once.
  Visit(Scene& scene, int64_t rewind, std::shared_ptr<uint64_t> used);

  void start(const WalkStart& start);  // forgets everything but the temperature

  // One frame on: the chosen branch, or all of them. If it fails nothing has changed.
  void step(const Action& action, bool all);

  // So many frames back, or as many as are kept.
  void rewind(int64_t frames, bool all);

  // `count` branches from the present of the chosen one: itself, and others with seeds of their own (branch_seed).
  void branch(int64_t count);
  void choose(int64_t branch);
  void keep();  // the chosen branch alone

  void set_temperature(double value);  // of frames to come; Error(usage) if the model has none
  void record(double fps);             // from the next step of the chosen branch on
  void stop_recording();

  const WalkStart& started() const { return start_; }
  std::optional<double> temperature() const { return temperature_; }
  int64_t branches() const { return static_cast<int64_t>(rings_.size()); }
  int64_t chosen() const { return static_cast<int64_t>(chosen_); }
  const Moment& now(int64_t branch) const { return *rings_[static_cast<size_t>(branch)].back(); }
  int64_t kept(int64_t branch) const { return std::ssize(rings_[static_cast<size_t>(branch)]) - 1; }
  double milliseconds() const { return milliseconds_; }  // that the model took for a frame of the last step
  const Recording* recording() const { return recording_.get(); }

  uint64_t kept_moments() const;  // of all branches

  // Gives up the oldest moment of the longest branch; false if only the present is left.
  bool forget_oldest();

 private:
  using Ring = std::deque<std::shared_ptr<const Moment>>;

  std::shared_ptr<const Moment> keep_moment(Moment moment) const;
  Moment after(const Moment& before, const at::Tensor& action);
  io::Image truth_at(const worlds::Pose& pose) const;
  void push(Ring& ring, std::shared_ptr<const Moment> moment) const;

  Scene& scene_;
  size_t most_;
  std::shared_ptr<uint64_t> used_;
  WalkStart start_;
  std::optional<double> temperature_;
  std::shared_ptr<const worlds::World> world_;
  std::vector<Ring> rings_;
  size_t chosen_ = 0;
  double milliseconds_ = 0;
  std::unique_ptr<Recording> recording_;
};

// The draws of branch `branch` (1, 2, ...) that leaves a walk of this seed after frame `number`.
uint64_t branch_seed(uint64_t seed, int64_t number, int64_t branch);

}  // namespace convssm::serve
