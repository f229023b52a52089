// Where the pixels of a field are and when its frames are: what a file of a grid says of itself, so that scores can weigh by
// latitude and forecasts can be written on the same grid.
#pragma once

#include <string>
#include <vector>

namespace convssm::data {

struct Axis {
  std::string name = {}, units = {};  // "latitude", "degrees_north" (of all spellings of it)
  std::vector<double> values = {};    // of each row, or of each column
};

struct Axes {
  Axis rows = {}, columns = {};
  std::string calendar = {};  // of the times, by CF's names; "": frames have no times
  double step = 0;            // seconds from frame to frame, the usual ones; 0: frames have no times
  int64_t months = 0;         // the step is so many months, whatever their lengths; 0: it is `step` seconds

  bool has_latitudes() const { return rows.units == "degrees_north"; }
};

}  // namespace convssm::data
