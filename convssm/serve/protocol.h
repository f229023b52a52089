// What a page and the server say to each other over a WebSocket: a request is one JSON text, its answer one message, a text for
// words and bytes for pictures. docs/serve.md is the same for people.
//   {"do": "join"}                                  a new visitor; {"do": "join", "visitor": "..."}: back to a walk
//   {"do": "look"}                                  the present once more
//   {"do": "start", "world": 3, "seed": 7}          a new walk
//   {"do": "step", "action": 1, "all": true}        one frame on; all branches, or without `all` the chosen one
//   {"do": "rewind", "frames": 20, "all": true}
//   {"do": "branch", "count": 3}   {"do": "choose", "branch": 1}   {"do": "keep"}
//   {"do": "temperature", "value": 0.8}
//   {"do": "record", "fps": 10}    {"do": "stop"}
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/base/error.h"

namespace convssm::serve {

inline constexpr size_t kLongestRequest = 4096;  // bytes

enum class Deed { join, look, start, step, rewind, branch, choose, keep, temperature, record, stop };

struct Request {
  Deed deed = Deed::look;
  std::string visitor;         // join
  int64_t world = 0;           // start
  uint64_t seed = 1;           // start
  std::vector<double> action;  // step
  bool all = false;            // step, rewind
  int64_t frames = 1;          // rewind
  int64_t count = 2;           // branch
  int64_t branch = 0;          // choose
  double value = 1;            // temperature
  double fps = 10;             // record
};

// Error(data) if it is too long or not JSON, Error(usage) if it is not one of the above; the nearest known word is named.
Request parse_request(std::string_view text);

struct Reply {
  bool binary = false;
  std::string bytes;
};

// A walk that is over, which a page can begin anew.
struct UnknownVisitor : Error {
  explicit UnknownVisitor(const std::string& message) : Error(ErrorKind::usage, message) {}
};

// {"error": "...", "kind": "usage"}; of an UnknownVisitor the kind is "unknown visitor".
Reply error_reply(const std::exception& error);

// A random name of 32 hexadecimal digits, and whether a text could be one.
std::string new_visitor();
bool is_visitor(std::string_view text);

// Whether a Host header names this machine by number, as localhost or by its own name: another name may have been
// made to point here by somebody's page.
bool is_own_host(std::string_view host);

}  // namespace convssm::serve
