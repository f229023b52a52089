// What is known of a frame in advance, as maps beside it: when it is and where its pixels are, and fields that somebody else forecasts
// or that do not change.
//   hour        sine and cosine of the hour of day (UTC)
//   season      sine and cosine of the part of the year
//   sun         cosine of the angle of the sun from the zenith, below 0 at night; needs latitudes and longitudes
//   latitude    from -1 at the south pole to 1 at the north pole
//   longitude   its sine and cosine
//   NAME        a field of the same files, "orography" or "u@850". One with times gives the map of each frame's own time, and
//               FieldChoice::forcing_ranges say what becomes -1 and 1, as they are to be the same for all files; of one without times
//               it is the least and the largest value where nothing is said. What is missing in it is 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convssm/data/field_file.h"
#include "convssm/data/field_heads.h"
#include "convssm/io/cf_time.h"

namespace convssm::data {

// FileHead::known of a file for forcings of these names. Error(data) that names the nearest one if it has no such field.
std::vector<std::vector<double>> known_moments(const std::vector<std::string>& names, const FieldFile& file);

class Forcings {
 public:
  // Of the files of these heads, the first of which is open. Two times are the same if they are within `tolerance` seconds.
  // Error(data) that names a file if one of them needs what it has not.
  Forcings(const std::vector<std::string>& names, const FieldChoice& choice, const FieldFile& first,
           const std::vector<FileHead>& heads, const std::optional<io::CfTime>& time, double tolerance);

  int64_t count() const { return count_; }  // maps

  // [T,count(),H,W], mostly in [-1,1], for frames of these times, or numbers where nobody knows the times, in a clip of
  // this group of files; undefined if there are no forcings. `read` gets a frame of a field of a file. Error(data) for a time of which
  // one is not known.
  using ReadKnown = std::function<io::Array(size_t file, const std::string& name, int64_t frame)>;
  at::Tensor maps(const std::vector<double>& moments, size_t group, const ReadKnown& read) const;

 private:
  struct KnownFrame {
    double moment;
    size_t file;
    int64_t frame;
  };
  struct Map {
    std::string name;
    double low = 0, high = 1;                         // of a field: what becomes -1 and 1
    at::Tensor fixed = {};                            // [H,W], of a field that does not change
    std::vector<std::vector<KnownFrame>> known = {};  // of one that does, sorted, of each group of files
  };

  void add_field(Map& map, size_t place, const FieldChoice& choice, const FieldFile& first,
                 const std::vector<FileHead>& heads);
  const KnownFrame& known_at(const Map& map, double moment, size_t group) const;

  std::vector<Map> maps_;
  std::optional<io::CfTime> time_;
  std::vector<double> latitudes_, longitudes_;  // of rows and columns, in degrees
  std::string path_;                            // of the first file
  double tolerance_;
  int64_t count_ = 0, height_, width_;
};

}  // namespace convssm::data
