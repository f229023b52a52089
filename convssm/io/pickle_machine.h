// The stack machine that builds a Pickle: one function per family of opcodes. Inside io/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/io/byte_cursor.h"
#include "convssm/io/pickle.h"
#include "convssm/io/pickle_opcodes.h"

namespace convssm::io {

class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, std::string_view advice);

  // Runs to the opcode STOP, fills the pickle, and returns the result.
  PickleRef run();

 private:
  // Each takes the opcode if it is one of its own.
  bool push_scalar(PickleOpcode opcode);
  bool push_text(PickleOpcode opcode);
  bool build_tuple(PickleOpcode opcode);
  bool build_container(PickleOpcode opcode);
  bool use_memo(PickleOpcode opcode);
  bool make_object(PickleOpcode opcode);
  bool control(PickleOpcode opcode);

  void refuse_opcode(PickleOpcode opcode);
  [[noreturn]] void refuse_name(std::string_view name) const;

  void push_global(const std::string& name);
  void call_function();
  void set_state();
  int64_t read_long();
  std::string read_line();

  void push(PickleKind kind, uint64_t payload = 0);
  void push_items(PickleKind kind, std::vector<PickleRef> items);
  void add_items(PickleRef container, const std::vector<PickleRef>& items);
  PickleRef pop();
  PickleRef top();
  std::vector<PickleRef> pop_to_mark();
  void put(uint64_t index);
  void get(uint64_t index);

  // FormatError at the opcode that is being executed.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(
        pickle_.file_, at_,
        fmt::format("{}: {}", pickle_opcode_name(opcode_), fmt::format(text, std::forward<Args>(args)...)));
  }

  Pickle& pickle_;
  std::string_view advice_;
  ByteCursor cursor_;
  std::deque<PickleRef> stack_;
  std::vector<size_t> marks_;    // heights of the stack
  std::vector<PickleRef> memo_;  // values to be used again
  uint32_t at_ = 0;              // where the current opcode is
  uint8_t opcode_ = 0;
};

}  // namespace convssm::io
