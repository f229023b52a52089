// A dataset is a pure function of (seed, split, index): no hidden cursor, no shared generator. Exact resume, any number
// of worker threads and sharding follow from that.
//   auto dataset = make_dataset({{"name", "moving-mnist"}}, seed);   Clips clip = dataset->clip(Split::train, 7, 300);
// What is chosen (steps, rates, checkpoints) is chosen on `valid`; `test` is for tables.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convssm/data/axes.h"
#include "convssm/data/clips.h"
#include "convssm/data/frame_format.h"
#include "convssm/io/array.h"

namespace convssm::data {

enum class Split { train, valid, test };
inline constexpr Split all_splits[] = {Split::train, Split::valid, Split::test};

inline constexpr int64_t any_length = int64_t{1} << 40;   // longest(): clips of any length can be made
inline constexpr uint64_t any_count = uint64_t{1} << 62;  // size(): there are as many clips as one asks for

const char* name(Split split);
Split parse_split(const std::string& text);

// The actions of a dataset: whole numbers 0 .. count-1, or `values` numbers for each frame, or `maps` numbers for each of its
// pixels (hour of day, height of the sun, orography: what is known in advance), or none.
struct ActionFormat {
  int64_t count = 0, values = 0, maps = 0;
  int64_t height = 0, width = 0;  // of maps that a model takes; those of a dataset are as large as its frames
  bool none() const { return count == 0 && values == 0 && maps == 0; }
  bool matter() const {
    return count > 1 || values > 0 || maps > 0;
  }  // where there is one action only, it tells nothing
};

// The codes of a dataset that a tokenizer has encoded: h x w of them for each frame, 0 .. count-1; or none.
struct CodeFormat {
  int64_t count = 0, height = 0, width = 0;
  std::string tokenizer = {};  // which one: a hash of its weights (models/tokenizer.h); "": nobody knows
  bool none() const { return count == 0; }
};

// What the clips of a dataset are, for a model to say whether it can be trained on them.
struct DataFormat {
  FrameFormat frames = {};  // of codes: one channel of h x w
  ActionFormat actions = {};
  CodeFormat codes = {};
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  // `frames` frames of clip number index % size(split), as a batch of one. An index beyond the size is a later visit of
  // the same clip, to which datasets of long recordings give another window; of training clips of several lengths the longer ones are
  // visited more often in place of the others. Called from several threads at once.
  virtual Clips clip(Split split, uint64_t index, int64_t frames) const = 0;

  virtual uint64_t size(Split split) const = 0;    // number of different clips, or any_count
  virtual int64_t longest(Split split) const = 0;  // frames that every clip has, or any_length
  virtual int64_t length(Split split, uint64_t) const { return longest(split); }  // of one clip

  // `frames` frames of a clip from number `first` on; from 0 on they are those of clip(), but for training clips.
  virtual Clips part(Split split, uint64_t index, int64_t first, int64_t frames) const;

  // The revisits of the first `frames` frames of a clip, [T], without its frames; undefined if nobody knows them.
  virtual at::Tensor revisits(Split, uint64_t, int64_t) const { return {}; }

  // What else a file of the clip holds beside frames, actions and revisits, one element for each frame; usually nothing.
  virtual std::vector<io::NamedArray> extras(Split, uint64_t, int64_t) const { return {}; }

  virtual FrameFormat format() const = 0;  // of codes: one channel of h x w
  virtual ActionFormat actions() const { return {}; }
  virtual CodeFormat codes() const { return {}; }  // if it has any, clips have codes instead of a video
  virtual const Axes* axes() const {
    return nullptr;
  }  // where the pixels of frames are and when frames are, if that is known

  // Before a training: Error(data) for what it would refuse on the way, with its place. Of more data than can be read in
  // seconds this only starts, and clip() throws what is found. Before clip() is called from other threads.
  virtual void check() const {}

  // For people: which clips of a split have fewer frames, and how to leave them out; "" if none has, or nobody knows.
  virtual std::string short_clips(Split, int64_t) const { return ""; }

  virtual std::vector<std::string> summary() const = 0;  // lines for people: what was found, how it is read
};

DataFormat format_of(const Dataset& dataset);

// Clips first .. first + count - 1 of a split, at least one, now and in order.
Clips read_clips(const Dataset& dataset, Split split, uint64_t first, int64_t count, int64_t frames);

struct DatasetInfo {
  std::string name;
  std::string summary;
  std::function<std::shared_ptr<const Dataset>(const nlohmann::json& options, uint64_t seed)> make;  // without `name`

  // The options, with or without `name`, of clips with `factor` frames where these have one; empty if there are none.
  std::function<nlohmann::json(const nlohmann::json& options, int64_t factor)> finer = {};
};

const std::vector<DatasetInfo>& all_datasets();

// Adds a dataset of the caller's own; Error(usage) if the name is taken or empty, or nothing makes it. Before the first use
// of make_dataset in other threads.
void register_dataset(DatasetInfo info);

// The one that options["name"] names. References end with register_dataset.
const DatasetInfo& find_dataset(const nlohmann::json& options);

// options: {"name": "moving-mnist", ...}. An unknown name or option is an error that names the nearest known one.
std::shared_ptr<const Dataset> make_dataset(const nlohmann::json& options, uint64_t seed);

}  // namespace convssm::data
