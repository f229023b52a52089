// Scores of one forecaster, gathered clip by clip: for every metric a value per clip and generated frame.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convssm::evaluate {

class Scores {
 public:
  explicit Scores(std::string name) : name_(std::move(name)) {}

  // truth, forecast [B,N,C,H,W] float32 in [0,1].
  void add(const at::Tensor& truth, const at::Tensor& forecast);

  // {"name", "psnr_f01": {"mean", "std"}, ...} over the first `frames` generated frames.
  nlohmann::json row(int64_t frames, int64_t chunk) const;

  // The mean over clips for every frame.
  std::vector<double> curve(const std::string& metric) const;

  const std::string& name() const { return name_; }
  std::vector<std::string> metrics() const;
  int64_t identical_frames() const { return identical_; }  // counted with the largest PSNR instead of infinity

 private:
  std::string name_;
  std::map<std::string, std::vector<at::Tensor>> values_;  // per metric: [B,N] of each batch
  int64_t identical_ = 0;
};

}  // namespace convssm::evaluate
