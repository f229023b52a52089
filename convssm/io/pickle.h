// A reader of Python's pickle format that executes nothing. A pickle is a program for a small stack machine, and
// unpickling it in Python runs whatever it names; here its values become a tree, a name that is not on the caller's list
// is refused where it stands, and a call stays a node of the tree: a function's name and its arguments.
// Depth, size and number of values are limited, so that a hostile file costs little memory, and nothing is recursive.
// Format: the modules pickle and pickletools of Python's standard library. Inside io/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/base/error.h"

namespace convssm::io {

// A name that a pickle may use: "torch.FloatStorage", and whether it may be called.
struct PickleGlobal {
  std::string_view name;
  bool callable = false;
};

struct PickleRules {
  std::span<const PickleGlobal> allowed;
  std::string_view advice;  // what to do about a file that has other names
};

inline constexpr std::string_view pickle_ordered_dict = "collections.OrderedDict";  // called without arguments, a dict

enum class PickleKind : uint8_t { none, boolean, integer, real, text, tuple, list, dict, global, call, persistent };

// A value of a pickle, by its place in the list of all values.
using PickleRef = uint32_t;

class Pickle {
 public:
  // Reads a whole pickle of the protocols 2 to 5. FormatError with the opcode and the offset of what is refused.
  // The rules must outlive the pickle.
  Pickle(std::string file, std::vector<std::byte> bytes, const PickleRules& rules);

  PickleRef root() const { return root_; }
  PickleKind kind(PickleRef value) const { return nodes_[value].kind; }

  // Each is for values of one kind. Reals are not kept.
  int64_t integer(PickleRef value) const { return static_cast<int64_t>(nodes_[value].payload); }
  std::string_view text(PickleRef value) const;
  std::string_view global(PickleRef value) const { return allowed_[nodes_[value].payload].name; }

  // The elements of a tuple or list; key, value, key, value ... of a dict; the function (a global) and its arguments
  // (a tuple) of a call; the id of a persistent object.
  std::span<const PickleRef> items(PickleRef value) const { return items_[nodes_[value].payload]; }

  // "a tuple of 3", "the text 'x'": for errors.
  std::string describe(PickleRef value) const;

  // FormatError at the place of a value.
  template <typename... Args>
  [[noreturn]] void fail(PickleRef value, fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(file_, nodes_[value].offset, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  friend class PickleMachine;

  struct Node {
    PickleKind kind = PickleKind::none;
    bool ordered = false;  // an OrderedDict
    uint8_t depth = 0;     // levels of items below
    uint32_t offset = 0;   // in the pickle
    uint64_t payload = 0;  // a number, begin and size of a text, a place in allowed_ or items_
  };

  std::string file_;
  std::vector<std::byte> bytes_;
  std::span<const PickleGlobal> allowed_;
  std::deque<Node> nodes_;
  std::deque<std::vector<PickleRef>> items_;
  PickleRef root_ = 0;
};

}  // namespace convssm::io
