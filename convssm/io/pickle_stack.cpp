// The stack and the memo of the pickle machine. Each growth is limited where it happens: the number of values, the
// depth (kept per node, so that no walk is needed to know it) and the memo, whose indices cannot exceed the bytes of
// the pickle.
#include <algorithm>

#include "convssm/io/pickle_machine.h"

namespace convssm::io {
namespace {

constexpr size_t max_nodes = 2 << 20;  // a tensor of a state dict takes about 12
constexpr uint8_t max_depth = 100;
constexpr PickleRef no_value = UINT32_MAX;

}  // namespace

void PickleMachine::push(PickleKind kind, uint64_t payload) {
  if (pickle_.nodes_.size() == max_nodes) fail("more than {} values", max_nodes);
  stack_.push_back(static_cast<PickleRef>(pickle_.nodes_.size()));
  pickle_.nodes_.push_back({kind, false, 0, at_, payload});
}

void PickleMachine::push_items(PickleKind kind, std::vector<PickleRef> items) {
  push(kind, pickle_.items_.size());
  pickle_.items_.emplace_back();
  add_items(stack_.back(), items);
}

void PickleMachine::add_items(PickleRef container, const std::vector<PickleRef>& items) {
  auto& node = pickle_.nodes_[container];
  auto& all = pickle_.items_[node.payload];
  all.insert(all.end(), items.begin(), items.end());
  for (const PickleRef item : items) {
    if (pickle_.nodes_[item].depth >= max_depth) fail("nested more than {} deep", max_depth);
    node.depth = std::max<uint8_t>(node.depth, pickle_.nodes_[item].depth + 1);
  }
}

PickleRef PickleMachine::top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("needs more values than the stack has");
  return stack_.back();
}

PickleRef PickleMachine::pop() {
  const PickleRef value = top();
  stack_.pop_back();
  return value;
}

std::vector<PickleRef> PickleMachine::pop_to_mark() {
  if (marks_.empty()) fail("there is no mark on the stack");
  const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
  std::vector<PickleRef> values(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return values;
}

// Python numbers the memo without gaps, and each put takes a byte at least.
void PickleMachine::put(uint64_t index) {
  if (index > pickle_.bytes_.size()) fail("{} is above every number that the memo can have", index);
  if (index >= memo_.size()) memo_.resize(index + 1, no_value);
  memo_[index] = top();
}

void PickleMachine::get(uint64_t index) {
  if (index >= memo_.size() || memo_[index] == no_value) fail("the memo has no value {}", index);
  stack_.push_back(memo_[index]);
}

}  // namespace convssm::io
