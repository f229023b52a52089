// A grid file, or several with other variables of the same frames, as frames: chosen variables are channels, decoded as the CF conventions say (scale_factor, add_offset, _FillValue,
// missing_value, valid_range, _Unsigned). Pixels that were not measured are NaN. A part of its frames is read without the rest of the file.
//   FieldFile file("era5.nc", {.variables = {"t2m", "u@850"}});   io::Array day = file.read(24, 24);   // f32 [24,C,H,W]
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convssm/data/field_axes.h"
#include "convssm/data/field_choice.h"
#include "convssm/data/field_values.h"
#include "convssm/io/grid_file.h"

namespace convssm::data {

struct FieldChannel {
  std::string name, units;  // "u@850", "m s-1"
};

class FieldFile {
 public:
  // Error(data) that names the file if there is no such variable, or they do not fit together.
  FieldFile(const std::string& path, const FieldChoice& choice, const std::vector<std::string>& beside = {});

  const std::string& path() const { return path_; }
  const std::string& kind() const { return files_[0]->kind(); }
  const std::vector<FieldChannel>& channels() const { return channels_; }
  int64_t frames() const { return frames_; }
  int64_t height() const { return static_cast<int64_t>(axes_.rows.values.size()); }
  int64_t width() const { return static_cast<int64_t>(axes_.columns.values.size()); }
  const Axes& axes() const { return axes_; }                         // without a step
  const std::optional<FieldTimes>& times() const { return times_; }  // of the frames, ascending or not
  bool declares_missing() const;  // whether the file says which values are no measurements

  // Frames first .. first+count-1, f32 [count,C,H,W].
  io::Array read(int64_t first, int64_t count) const;

  // What is known of a field in advance, "sst" or "u@850", on the grid of the frames: at which times, in seconds, or at the numbers of
  // the frames where nobody knows the times; nothing if it is the same at all times, as orography is. Error(data) that names the file
  // if it does not fit to the frames.
  std::vector<double> known_moments(const std::string& name) const;
  io::Array read_known(const std::string& name, int64_t frame) const;  // the one of that number, f32 [H,W]

  bool has(const std::string& name) const { return find(name).variable != nullptr; }
  std::vector<std::string> names() const;  // of all variables

 private:
  struct Found {  // null: there is none
    const io::GridFile* file = nullptr;
    const io::GridVariable* variable = nullptr;
  };
  struct Layer {  // a channel
    const io::GridFile* file = nullptr;
    const io::GridVariable* variable = nullptr;
    FieldDimensions dims;
    std::vector<int64_t> first;  // where its box begins, but for time
    FieldValues values;
  };

  void add_channels(const std::string& wanted, const FieldChoice& choice);
  Found find(const std::string& name) const;
  Found find_or_fail(const std::string& name) const;  // Error(data) that names the nearest one
  Layer make_layer(const Found& found, const FieldChoice& choice) const;
  Layer known_layer(const std::string& name) const;
  void add_layer(const Layer& layer, const std::string& name);
  void check_times(const Layer& layer, const std::string& name) const;
  void read_layer(const Layer& layer, int64_t first, int64_t count, float* out, int64_t frame_step) const;

  std::string path_;
  FieldChoice choice_;
  std::vector<std::unique_ptr<io::GridFile>> files_;
  std::vector<Layer> layers_;
  std::vector<FieldChannel> channels_;
  int64_t frames_ = 0;
  Axes axes_;
  std::optional<FieldTimes> times_;
};

}  // namespace convssm::data
