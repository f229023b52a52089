// What a file or folder of clips holds and how the dataset `folder` would read it, problems included.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "convssm/data/dataset.h"
#include "convssm/data/pixels.h"
#include "convssm/data/recording.h"
#include "convssm/io/png.h"

namespace convssm::data {

struct ArraySummary {
  std::string name, type, shape;  // "data", "u8", "[20, 64, 64, 1]"
  std::string dimensions = {};    // "[time, lat, lon]" of grid files
};

// When a clip begins and ends, in seconds since 1970-01-01 of the calendar of its axes.
struct TimeSpan {
  double first = 0, last = 0;
  int64_t frames = 0;
};

struct Inspection {
  std::string path;
  std::vector<ArraySummary> arrays;                      // of the first file
  std::vector<RecordingInfo> files;                      // those that could be read
  std::vector<std::string> broken;                       // those that could not
  std::vector<std::pair<std::string, uint64_t>> splits;  // clips of train/, valid/ and test/, if there are such folders
  uint64_t clips = 0;
  int64_t shortest = 0, longest = 0;  // frames
  Extremes values;                    // over all files
  std::vector<Extremes> channels;     // of each channel
  std::vector<TimeSpan> spans;        // of all clips, if their times are known
  CodeFormat codes;                   // if these are clips of codes
  std::vector<std::string> notes;     // on actions, and on files that are left out
  std::string yaml;                   // the section `data:` that reads it
  std::string problem;                // why it cannot be read, or ""
};

// With options of the dataset `folder`, the path among them. Error(io) if there is no such path, Error(usage) for wrong
// options. An IDX file is recognized too.
Inspection inspect(const nlohmann::json& options);
Inspection inspect(const std::string& path, const std::string& key, const std::string& layout);

std::vector<std::string> inspection_lines(const Inspection& found);
nlohmann::json inspection_json(const Inspection& found);

// Up to `count` frames of the first clip side by side, evenly chosen, small ones enlarged. The least to the largest
// value found is black to white, of bytes 0 to 255; the first channel alone unless there are three.
io::Image frame_strip(const Inspection& found, int64_t count);

}  // namespace convssm::data
