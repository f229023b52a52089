// What a core carries from frame to frame: a plain value of named tensors. Copy it to branch a future, save its items
// to a file to go on tomorrow, send it elsewhere. An empty state is the start of a sequence.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace convssm::cores {

class State {
 public:
  using Items = std::vector<std::pair<std::string, at::Tensor>>;

  bool empty() const { return items_.empty(); }
  const Items& items() const& { return items_; }
  Items items() && { return std::move(items_); }  // so that a loop over the items of a temporary is safe

  // The tensor of this name; undefined if the state is empty. A non-empty state without it is an error.
  at::Tensor get(const std::string& name) const;
  void set(const std::string& name, at::Tensor value);

  State detach() const;  // the same values, cut from the graph
  State clone() const;   // values in memory of their own
  State to(at::Device device) const;

 private:
  template <typename Change>
  State changed(const Change& change) const;

  Items items_;
};

}  // namespace convssm::cores
