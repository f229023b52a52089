// A dataset is a pure function of (seed, split, index): no hidden cursor, no shared generator. Exact resume, any number
// of worker threads and sharding follow from that.
//   auto dataset = make_dataset({{"name", "moving-mnist"}}, seed);   Clip clip = dataset->clip(Split::train, 7, 300);
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace convssm::data {

enum class Split { train, test };

inline constexpr int64_t any_length = int64_t{1} << 40;   // longest(): clips of any length can be made
inline constexpr uint64_t any_count = uint64_t{1} << 62;  // size(): there are as many clips as one asks for

const char* name(Split split);
Split parse_split(const std::string& text);

struct Clip {
  at::Tensor video;    // [T,C,H,W] float32 in [-1,1]
  at::Tensor actions;  // [T] int64, undefined if the dataset has none
};

// What the frames are, and how stored values became [-1,1]: v = 2 (x - low) / (high - low) - 1. Kept with a model.
struct FrameFormat {
  int64_t channels = 1, height = 0, width = 0;
  double low = 0, high = 255;

  static FrameFormat from_json(const nlohmann::json& json);
  nlohmann::json to_json() const;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  // `frames` frames of clip number index % size(split). An index beyond the size is a later visit of the same clip, to
  // which datasets of long recordings give another window. Called from several threads at once.
  virtual Clip clip(Split split, uint64_t index, int64_t frames) const = 0;

  virtual uint64_t size(Split split) const = 0;    // number of different clips, or any_count
  virtual int64_t longest(Split split) const = 0;  // frames that every clip has, or any_length
  virtual FrameFormat format() const = 0;
  virtual int64_t action_count() const { return 0; }     // actions are 0 .. count-1; 0: the dataset has none
  virtual std::vector<std::string> summary() const = 0;  // lines for people: what was found, how it is read
};

struct DatasetInfo {
  const char* name;
  const char* summary;
  std::shared_ptr<const Dataset> (*make)(const nlohmann::json& options, uint64_t seed);  // options without `name`
};

const std::vector<DatasetInfo>& all_datasets();

// options: {"name": "moving-mnist", ...}. An unknown name or option is an error that names the nearest known one.
std::shared_ptr<const Dataset> make_dataset(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::data
