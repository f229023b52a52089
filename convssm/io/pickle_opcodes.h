// The opcodes of Python's pickle format, as far as torch.save writes them, and the names of the others for error
// messages. Reference: the module pickletools of Python's standard library. Inside io/ only.
#pragma once

#include <cstdint>
#include <string>

namespace convssm::io {

enum class PickleOpcode : uint8_t {
  mark = '(',
  stop = '.',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  binfloat = 'G',
  binunicode = 'X',
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  empty_tuple = ')',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  tuple = 't',
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_dict = '}',
  setitem = 's',
  setitems = 'u',
  binput = 'q',
  long_binput = 'r',
  memoize = 0x94,
  binget = 'h',
  long_binget = 'j',
  global = 'c',
  stack_global = 0x93,
  reduce = 'R',
  build = 'b',
  binpersid = 'Q',
  proto = 0x80,
  frame = 0x95,
  // Known in order to say what they would do.
  inst = 'i',
  obj = 'o',
  newobj = 0x81,
  newobj_ex = 0x92,
};

// "REDUCE (0x52)", or "unknown opcode (0xff)".
std::string pickle_opcode_name(uint8_t opcode);

}  // namespace convssm::io
