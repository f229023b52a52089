// Each family of opcodes has a function that takes the opcode or says that it is not its own. The machine has no jumps:
// every opcode moves the cursor forward, so the work is bounded by the size of the pickle.
#include "convssm/io/pickle_machine.h"

#include <algorithm>

#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr uint64_t max_pickle = 64 << 20;
constexpr size_t max_marks = 100;
constexpr size_t max_name = 200;

}  // namespace

PickleMachine::PickleMachine(Pickle& pickle, std::string_view advice)
    : pickle_(pickle), advice_(advice), cursor_(pickle.file_, 0, pickle.bytes_) {}

PickleRef PickleMachine::run() {
  if (cursor_.left() > max_pickle)
    cursor_.fail("a pickle of {} bytes, above the limit of {}", cursor_.left(), max_pickle);
  if (pickle_.bytes_.empty() || pickle_.bytes_[0] != std::byte{0x80}) {
    cursor_.fail("not a pickle of protocol 2 or above: it does not begin with 0x80");
  }
  do {
    at_ = static_cast<uint32_t>(cursor_.position());
    opcode_ = cursor_.number<uint8_t>("an opcode of the pickle");
    const auto opcode = static_cast<PickleOpcode>(opcode_);
    if (!push_scalar(opcode) && !push_text(opcode) && !build_tuple(opcode) && !build_container(opcode) &&
        !use_memo(opcode) && !make_object(opcode) && !control(opcode)) {
      refuse_opcode(opcode);
    }
  } while (static_cast<PickleOpcode>(opcode_) != PickleOpcode::stop);
  const PickleRef result = pop();
  if (!stack_.empty() || !marks_.empty()) fail("values are left on the stack");
  if (!cursor_.at_end()) fail("{} bytes follow the end of the pickle", cursor_.left());
  return result;
}

bool PickleMachine::push_scalar(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::none:
      push(PickleKind::none);
      return true;
    case PickleOpcode::new_true:
    case PickleOpcode::new_false:
      push(PickleKind::boolean, opcode == PickleOpcode::new_true);
      return true;
    case PickleOpcode::binint:
      push(PickleKind::integer, static_cast<uint64_t>(int64_t{cursor_.number<int32_t>("a number")}));
      return true;
    case PickleOpcode::binint1:
      push(PickleKind::integer, cursor_.number<uint8_t>("a number"));
      return true;
    case PickleOpcode::binint2:
      push(PickleKind::integer, cursor_.number<uint16_t>("a number"));
      return true;
    case PickleOpcode::long1:
      push(PickleKind::integer, static_cast<uint64_t>(read_long()));
      return true;
    case PickleOpcode::binfloat:
      cursor_.take(8, "a float");
      push(PickleKind::real);
      return true;
    default:
      return false;
  }
}

// Two's complement of any number of bytes, the lowest first.
int64_t PickleMachine::read_long() {
  const auto bytes = cursor_.take(cursor_.number<uint8_t>("a number"), "a number");
  if (bytes.size() > 8) fail("a number of {} bytes, at most 8 are supported", bytes.size());
  if (bytes.empty()) return 0;
  uint64_t value = (bytes.back() & std::byte{0x80}) == std::byte{0} ? 0 : UINT64_MAX;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return static_cast<int64_t>(value);
}

bool PickleMachine::push_text(PickleOpcode opcode) {
  uint64_t size = 0;
  if (opcode == PickleOpcode::binunicode)
    size = cursor_.number<uint32_t>("the length of a text");
  else if (opcode == PickleOpcode::short_binunicode)
    size = cursor_.number<uint8_t>("the length of a text");
  else if (opcode == PickleOpcode::binunicode8)
    size = cursor_.number<uint64_t>("the length of a text");
  else
    return false;
  const uint64_t begin = cursor_.index();
  cursor_.take(size, "a text");
  push(PickleKind::text, begin << 32 | size);
  return true;
}

bool PickleMachine::build_tuple(PickleOpcode opcode) {
  if (opcode == PickleOpcode::empty_tuple) {
    push_items(PickleKind::tuple, {});
  } else if (opcode == PickleOpcode::tuple) {
    push_items(PickleKind::tuple, pop_to_mark());
  } else if (opcode == PickleOpcode::tuple1 || opcode == PickleOpcode::tuple2 || opcode == PickleOpcode::tuple3) {
    std::vector<PickleRef> items(opcode_ - static_cast<uint8_t>(PickleOpcode::tuple1) + 1u);
    for (size_t i = items.size(); i-- > 0;) items[i] = pop();
    push_items(PickleKind::tuple, std::move(items));
  } else {
    return false;
  }
  return true;
}

bool PickleMachine::build_container(PickleOpcode opcode) {
  const bool many = opcode == PickleOpcode::appends || opcode == PickleOpcode::setitems;
  if (opcode == PickleOpcode::empty_list) {
    push_items(PickleKind::list, {});
  } else if (opcode == PickleOpcode::empty_dict) {
    push_items(PickleKind::dict, {});
  } else if (opcode == PickleOpcode::append || opcode == PickleOpcode::appends) {
    const auto items = many ? pop_to_mark() : std::vector{pop()};
    const PickleRef list = top();
    if (pickle_.kind(list) != PickleKind::list) fail("expected a list to append to, found {}", pickle_.describe(list));
    add_items(list, items);
  } else if (opcode == PickleOpcode::setitem || opcode == PickleOpcode::setitems) {
    std::vector<PickleRef> items(2);
    if (many) {
      items = pop_to_mark();
    } else {
      items[1] = pop();
      items[0] = pop();
    }
    const PickleRef dict = top();
    if (pickle_.kind(dict) != PickleKind::dict)
      fail("expected a dict to set items of, found {}", pickle_.describe(dict));
    if (items.size() % 2 != 0) fail("{} keys and values: an even number is needed", items.size());
    add_items(dict, items);
  } else {
    return false;
  }
  return true;
}

bool PickleMachine::use_memo(PickleOpcode opcode) {
  constexpr std::string_view what = "a number of the memo";
  if (opcode == PickleOpcode::binput)
    put(cursor_.number<uint8_t>(what));
  else if (opcode == PickleOpcode::long_binput)
    put(cursor_.number<uint32_t>(what));
  else if (opcode == PickleOpcode::memoize)
    put(memo_.size());
  else if (opcode == PickleOpcode::binget)
    get(cursor_.number<uint8_t>(what));
  else if (opcode == PickleOpcode::long_binget)
    get(cursor_.number<uint32_t>(what));
  else
    return false;
  return true;
}

bool PickleMachine::make_object(PickleOpcode opcode) {
  if (opcode == PickleOpcode::global) {
    const std::string module = read_line();
    push_global(module + "." + read_line());
  } else if (opcode == PickleOpcode::stack_global) {
    const PickleRef name = pop(), module = pop();
    if (pickle_.kind(name) != PickleKind::text || pickle_.kind(module) != PickleKind::text) {
      fail("expected two texts, found {} and {}", pickle_.describe(module), pickle_.describe(name));
    }
    push_global(fmt::format("{}.{}", pickle_.text(module).substr(0, max_name), pickle_.text(name).substr(0, max_name)));
  } else if (opcode == PickleOpcode::reduce) {
    call_function();
  } else if (opcode == PickleOpcode::build) {
    set_state();
  } else if (opcode == PickleOpcode::binpersid) {
    push_items(PickleKind::persistent, {pop()});
  } else {
    return false;
  }
  return true;
}

bool PickleMachine::control(PickleOpcode opcode) {
  if (opcode == PickleOpcode::mark) {
    if (marks_.size() == max_marks) fail("nested more than {} deep", max_marks);
    marks_.push_back(stack_.size());
  } else if (opcode == PickleOpcode::proto) {
    const auto protocol = cursor_.number<uint8_t>("the protocol");
    if (protocol < 2 || protocol > 5) fail("protocol {}, supported are 2 to 5", protocol);
  } else if (opcode == PickleOpcode::frame) {
    cursor_.take(8, "the size of a frame");
  } else {
    return opcode == PickleOpcode::stop;
  }
  return true;
}

// Says what the opcode would have made, where that can be told.
void PickleMachine::refuse_opcode(PickleOpcode opcode) {
  if (opcode == PickleOpcode::inst) {
    const std::string module = read_line();
    refuse_name(module + "." + read_line());
  }
  const bool object =
      opcode == PickleOpcode::obj || opcode == PickleOpcode::newobj || opcode == PickleOpcode::newobj_ex;
  if (object) {
    const auto is_global = [&](PickleRef value) { return pickle_.kind(value) == PickleKind::global; };
    const auto type = std::find_if(stack_.rbegin(), stack_.rend(), is_global);
    refuse_name(type == stack_.rend() ? "an unknown class" : pickle_.global(*type));
  }
  fail("this opcode is not part of a state dict: refused. {}", advice_);
}

void PickleMachine::refuse_name(std::string_view name) const {
  fail("{} is not part of a state dict, and to build it could run code: refused. {}", in_quotes(name), advice_);
}

void PickleMachine::push_global(const std::string& name) {
  const auto found = std::ranges::find(pickle_.allowed_, name, &PickleGlobal::name);
  if (found == pickle_.allowed_.end()) refuse_name(name);
  push(PickleKind::global, static_cast<uint64_t>(found - pickle_.allowed_.begin()));
}

void PickleMachine::call_function() {
  const PickleRef arguments = pop(), function = pop();
  if (pickle_.kind(function) != PickleKind::global) fail("cannot call {}: refused", pickle_.describe(function));
  if (!pickle_.allowed_[pickle_.nodes_[function].payload].callable) refuse_name(pickle_.global(function));
  if (pickle_.kind(arguments) != PickleKind::tuple) {
    fail("the arguments of '{}' must be a tuple, found {}", pickle_.global(function), pickle_.describe(arguments));
  }
  if (pickle_.global(function) != pickle_ordered_dict) return push_items(PickleKind::call, {function, arguments});
  if (!pickle_.items(arguments).empty()) {
    fail("'{}' is called with {} arguments, expected none", pickle_ordered_dict, pickle_.items(arguments).size());
  }
  push_items(PickleKind::dict, {});
  pickle_.nodes_.back().ordered = true;
}

// PyTorch sets the attribute _metadata of a state dict, versions of its modules; nothing here needs it.
void PickleMachine::set_state() {
  pop();
  const PickleRef object = top();
  if (!pickle_.nodes_[object].ordered) fail("sets attributes of {}: refused. {}", pickle_.describe(object), advice_);
}

std::string PickleMachine::read_line() {
  std::string line;
  for (char next; (next = static_cast<char>(cursor_.number<uint8_t>("a name"))) != '\n'; line += next) {
    if (line.size() == max_name) fail("a name of more than {} bytes: {}", max_name, in_quotes(line));
  }
  return line;
}

}  // namespace convssm::io
