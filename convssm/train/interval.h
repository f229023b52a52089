// Means over the steps since the last line of the log. Part of every checkpoint, so that a line that was under way when a
// run was stopped ends as if it had not been.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "convssm/train/gradients.h"

namespace convssm::train {

class Interval {
 public:
  // The first player's values stand under their own names, those of another under "player.name".
  void count(const std::string& prefix, const LossValues& values, double gradient_norm);
  void count_skipped() { ++skipped_; }
  int64_t skipped() const { return skipped_; }

  // {"loss", "grad_norm", parts...}: each the mean over the steps in which it was there.
  nlohmann::json means() const;

  nlohmann::json to_json() const;
  static Interval from_json(const nlohmann::json& json);  // also as version 0.1 wrote it

 private:
  struct Sum {
    double sum = 0;
    int64_t count = 0;
  };
  void add(const std::string& name, double value);

  int64_t skipped_ = 0;
  std::map<std::string, Sum> sums_;
};

}  // namespace convssm::train
