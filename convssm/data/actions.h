// Actions in files: an array or a table with one action for each frame. An action is a whole number, where a negative one is
// masked, or A numbers, where NaN is. Here action k leads to frame k: it was taken between frame k-1 and frame k. Files
// have them in other ways too, which are told apart by type, shape and values or by what the user says.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convssm/io/array.h"

namespace convssm {
class OptionReader;
}

namespace convssm::data {

class ArrayCache;

enum class ActionsAlign {
  by_count,  // leads_to if there are as many actions as frames, taken_at if there is one less
  leads_to,  // action k led to frame k
  taken_at   // action k was taken at frame k and led to frame k+1; nobody knows what led to frame 0
};

enum class ActionsKind {
  found,    // whole numbers are `index`; rows of numbers are `one_hot` if they all are, otherwise `values`
  index,    // one whole number
  one_hot,  // a row with a 1 at the number of the action; a first row of zeros is masked
  values    // numbers
};

struct ActionReading {
  ActionsAlign align = ActionsAlign::by_count;
  ActionsKind kind = ActionsKind::found;

  void read_options(OptionReader& read);  // actions_align, actions_kind
};

// How an array holds the actions of clips.
struct StoredActions {
  int64_t rows = 0;     // of a clip
  int64_t columns = 0;  // of a row; 0: the array has no dimension for them
  int64_t values = 0;   // numbers of an action; 0: it is one whole number
  bool one_hot = false, taken_at = false;
};

// Whether the array has a row for each element of `frames`, [T] or [N,T], or one less for each clip, and of which kind. Rows
// that may be one-hot are told by their values: `one_hot` is whether they have to be.
std::optional<StoredActions> recognize_actions(const io::ArrayInfo& array, std::span<const int64_t> frames,
                                               const ActionReading& reading);

// "whole numbers of shape [20], one per frame, or floats of shape [20, A]"
std::string expected_actions(std::span<const int64_t> frames);

// Whether each row has a single 1 and zeros, but for a first row of zeros.
bool is_one_hot(const io::Array& rows, int64_t columns);

// Where the actions of a clip begin: at row `first` of an array in a file of arrays, or of a table.
struct ActionPlace {
  std::string path, key;
  int64_t first = 0;
};

// Rows of a file of arrays, or of a .csv file; the file is read as the cache says.
io::Array read_action_rows(ArrayCache& cache, const ActionPlace& place, int64_t columns, int64_t first, int64_t count);

// The actions that led to frames first .. first+count-1 of a clip, [T] int64 or [T,A] float32.
at::Tensor aligned_actions(ArrayCache& cache, const ActionPlace& place, const StoredActions& stored, int64_t first,
                           int64_t count);

// A table of actions as an array: [T] whole numbers, or [T,A]. Of a table with a line of names the columns whose names begin
// with `action`, or with `key`, are taken. FormatError or Error(data) that names the file.
io::Array read_action_table(const std::string& path, const std::string& key);

// A file of actions, of one clip or several, [N,T], [N,T,A] or maps [N,T,M,H,W]: .npy, .csv, or .npz with `key` (empty:
// `actions` or the only array). Error(data) that names the file if these are not actions.
at::Tensor read_action_file(const std::string& path, const std::string& key);

}  // namespace convssm::data
