// What is usual at a place: the mean of the training frames, of the same hour of the day where frames are less than a day
// apart, and of the same month of the year where the recording covers two years of its calendar or more. Means are in the units
// of the data and not smoothed.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convssm/evaluate/references.h"
#include "convssm/io/cf_time.h"

namespace convssm::evaluate {

class Climatology {
 public:
  // Reads the training frames, at most `most` of them, in pieces evenly chosen. Error(data) that says why there is none:
  // frames without times, clips without end, less than 10 frames.
  explicit Climatology(const data::Dataset& dataset, int64_t most = 20000);

  // times [...] as Clips::timing.times -> [...,C,H,W] float64 in units. A pixel that was measured in fewer than 3 frames of
  // its hour and month has the mean over all hours of the month; in fewer than 3 of these too, that over all frames; one that
  // never was, that of its channel.
  at::Tensor at_times(const at::Tensor& times) const;

  const std::string& text() const { return text_; }  // "mean of 8760 training frames by hour of the day (24)"

 private:
  int64_t bin(double seconds) const;

  io::CfTime time_;
  std::string text_;
  int64_t hours_ = 1, months_ = 1;  // bins of a day, of a year
  at::Tensor means_;                // [bins,C,H,W] float32
};

std::unique_ptr<Reference> make_climatology(const data::Dataset& dataset);

}  // namespace convssm::evaluate
