// What is known of a frame in advance, as maps beside it: when it is and where its pixels are, and fields that do not change.
//   hour        sine and cosine of the hour of day (UTC)
//   season      sine and cosine of the part of the year
//   sun         cosine of the angle of the sun from the zenith, below 0 at night; needs latitudes and longitudes
//   latitude    from -1 at the south pole to 1 at the north pole
//   longitude   its sine and cosine
//   NAME        a field without times of the same file, such as orography, from -1 at its least to 1 at its largest value
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "convssm/data/field_file.h"
#include "convssm/io/cf_time.h"

namespace convssm::data {

class Forcings {
 public:
  // Error(data) that names the file if one of them needs what it has not; Error(usage) that names the nearest one.
  Forcings(const std::vector<std::string>& names, const FieldFile& file, const std::optional<io::CfTime>& time);

  int64_t count() const { return count_; }  // maps

  // [T,count(),H,W] in [-1,1] for frames of these times; undefined if there are none.
  at::Tensor maps(const std::vector<double>& seconds) const;

 private:
  std::vector<std::string> names_;
  std::optional<io::CfTime> time_;
  std::vector<double> latitudes_, longitudes_;  // of rows and columns, in degrees
  std::vector<at::Tensor> fixed_;               // [H,W], of each name; undefined for those that change with time
  int64_t count_ = 0, height_, width_;
};

}  // namespace convssm::data
