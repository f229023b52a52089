// The tree is flat: a node is a kind and a payload of 64 bits, its children are a list of indices of other nodes. Texts
// stay in the pickle's own bytes as (begin, size). So a value that is shared costs nothing, and nothing is freed
// recursively.
#include "convssm/io/pickle.h"

#include "convssm/io/byte_cursor.h"
#include "convssm/io/pickle_machine.h"
#include "convssm/io/text.h"

namespace convssm::io {

Pickle::Pickle(std::string file, std::vector<std::byte> bytes, const PickleRules& rules)
    : file_(std::move(file)), bytes_(std::move(bytes)), allowed_(rules.allowed) {
  root_ = PickleMachine(*this, rules.advice).run();
}

std::string_view Pickle::text(PickleRef value) const {
  const uint64_t payload = nodes_[value].payload;
  return as_text(std::span(bytes_).subspan(payload >> 32, static_cast<uint32_t>(payload)));
}

std::string Pickle::describe(PickleRef value) const {
  switch (kind(value)) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return nodes_[value].payload ? "True" : "False";
    case PickleKind::integer:
      return fmt::format("the number {}", integer(value));
    case PickleKind::real:
      return "a float";
    case PickleKind::text:
      return fmt::format("the text {}", in_quotes(text(value)));
    case PickleKind::tuple:
      return fmt::format("a tuple of {}", items(value).size());
    case PickleKind::list:
      return fmt::format("a list of {}", items(value).size());
    case PickleKind::dict:
      return fmt::format("a dict of {}", items(value).size() / 2);
    case PickleKind::global:
      return fmt::format("the name '{}'", global(value));
    case PickleKind::call:
      return fmt::format("a call of '{}'", global(items(value)[0]));
    case PickleKind::persistent:
      return "a storage";
  }
  return "";
}

}  // namespace convssm::io
