// Where the forecasts of `convssm generate` begin: a saved state or recordings, and the actions of the frames to come.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "convssm/cli/generate.h"
#include "convssm/data/field_writer.h"
#include "convssm/generate/state_file.h"
#include "convssm/models/forecaster.h"
#include "convssm/run/model_file.h"

namespace convssm::cli {

// A row is one future: sample j of clip i is row i * samples + j.
struct ForecastStart {
  models::State state;   // with --state
  data::Clips observed;  // true frames of every row that the state takes in
  data::Clips context;   // without --state: the first frames of every row
  at::Tensor actions;    // [rows,frames] or [rows,frames,A] of the frames to generate
  models::Seeds seeds;
  int64_t clips = 1, rows = 1;
  int64_t frames = 0;           // to generate
  std::string layout = "THWC";  // of results that are arrays: that of the recording, if there is one
  std::vector<data::FieldPlace>
      places;  // of each clip, with the times of the frames seen and of those to generate; or none

  // Of each row, where and when the last of `made` frames after those seen is: for a state that goes on from it.
  std::vector<data::FieldPlace> last_places(int64_t made) const;

  int64_t seen() const { return std::max(context.frames(), observed.frames()); }
};

generate::StateOwner state_owner(const run::LoadedModel& loaded);

ForecastStart make_start(const GenerateCommand& command, const run::LoadedModel& loaded);

}  // namespace convssm::cli
