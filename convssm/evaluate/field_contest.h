// Forecasts of the same clips of fields against one truth, in units: every forecaster's scores over the horizons and for every
// lead time, as metrics.json has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convssm/evaluate/field_scores.h"
#include "convssm/evaluate/setting.h"

namespace convssm::evaluate {

// Maps of the error of several forecasters at the last lead time, for pictures.
struct VariableMaps {
  std::string variable, units;
  std::vector<std::string> names;  // of the forecasters
  std::vector<at::Tensor> maps;    // [H,W] float64, NaN where nothing was measured
  int64_t frames = 0;              // ahead
};

class FieldContest {
 public:
  // `fields` must outlive it.
  FieldContest(const std::vector<std::string>& names, const Fields& fields, const Setting& setting, uint64_t seed);

  // A batch of frames [B,N,C,H,W] in [-1,1]: the truth, where it was measured (undefined: everywhere), the climatology
  // (undefined: none), and the futures of each forecaster in the order of the names.
  struct Batch {
    at::Tensor truth, valid = {}, usual = {};
    int64_t first_clip = 0;
  };
  void add(const Batch& batch, const std::vector<std::vector<at::Tensor>>& futures);

  // {"variables": [{"name", "units", "thresholds"}, ...], "horizons": [{"frames", "rows": [{"name", "variables": {"t2m":
  // {...}}}, ...]}, ...], "curves": {"frames": [1, ...], "variables": {"t2m": {"rmse": {"model": [...]}, "csi@0.1": ...}}}}
  // with scores as of FieldScores::scores. Beside an ensemble single forecasts have a CRPS too, which is their mean absolute error.
  nlohmann::json to_json() const;

  std::vector<VariableMaps> maps() const;

 private:
  nlohmann::json scores_of(const FieldScores& forecaster, size_t variable, int64_t begin, int64_t end) const;
  nlohmann::json curves() const;

  const Fields* fields_;
  std::vector<int64_t> horizons_;
  int64_t longest_;
  std::vector<FieldScores> scores_;
  bool ensemble_ = false;  // whether one of them is of several futures
};

}  // namespace convssm::evaluate
