#include "convssm/serve/protocol.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "convssm/base/error.h"
#include "convssm/base/json.h"
#include "convssm/base/nearest.h"
#include "convssm/base/option_reader.h"

namespace convssm::serve {
namespace {

struct DeedInfo {
  const char* name;
  Deed deed;
  void (*read)(OptionReader& read, Request& request);
};

void read_nothing(OptionReader&, Request&) {}

const std::vector<DeedInfo>& deeds() {
  static const std::vector<DeedInfo> all = {
      {"join", Deed::join, [](OptionReader& read, Request& r) { read("visitor", r.visitor); }},
      {"look", Deed::look, read_nothing},
      {"start", Deed::start,
       [](OptionReader& read, Request& r) {
         read("world", r.world);
         read("seed", r.seed);
       }},
      {"step", Deed::step,
       [](OptionReader& read, Request& r) {
         read("action", r.action);
         read("all", r.all);
       }},
      {"rewind", Deed::rewind,
       [](OptionReader& read, Request& r) {
         read("frames", r.frames);
         read("all", r.all);
       }},
      {"branch", Deed::branch, [](OptionReader& read, Request& r) { read("count", r.count); }},
      {"choose", Deed::choose, [](OptionReader& read, Request& r) { read("branch", r.branch); }},
      {"keep", Deed::keep, read_nothing},
      {"temperature", Deed::temperature, [](OptionReader& read, Request& r) { read("value", r.value); }},
      {"record", Deed::record, [](OptionReader& read, Request& r) { read("fps", r.fps); }},
      {"stop", Deed::stop, read_nothing},
  };
  return all;
}

const DeedInfo& find_deed(const std::string& name) {
  std::vector<std::string> known;
  for (const DeedInfo& info : deeds()) {
    if (info.name == name) return info;
    known.emplace_back(info.name);
  }
  fail_unknown("[request] unknown word of 'do'", name, known);
}

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::data:
      return "data";
    case ErrorKind::io:
      return "io";
    case ErrorKind::numeric:
      return "numeric";
  }
  return "usage";
}

// "127.0.0.1:8723" -> "127.0.0.1", "[::1]:8723" -> "::1"
std::string without_port(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  return std::string(host.substr(0, host.find(':')));
}

std::string own_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

Request parse_request(std::string_view text) {
  if (text.size() > kLongestRequest) {
    fail(ErrorKind::data, "[request] expected at most {} bytes, got {}", kLongestRequest, text.size());
  }
  nlohmann::json json = parse_json(text, "the request");
  if (!json.is_object() || !json.contains("do") || !json["do"].is_string()) {
    fail(ErrorKind::usage, "[request] expected an object with a word 'do', such as {{\"do\": \"look\"}}");
  }
  const DeedInfo& info = find_deed(json["do"].get<std::string>());
  json.erase("do");
  Request request;
  request.deed = info.deed;
  OptionReader read("request", json);
  info.read(read, request);
  read.finish();
  return request;
}

Reply error_reply(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  const nlohmann::json json = {
      {"error", own != nullptr ? own->what() : "the server could not do this; its log says why"},
      {"kind", dynamic_cast<const UnknownVisitor*>(&error) != nullptr ? "unknown visitor"
               : own != nullptr                                       ? name_of(own->kind())
                                                                      : "internal"}};
  return {false, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

std::string new_visitor() {
  std::random_device random;
  std::string name;
  for (int i = 0; i < 4; ++i) name += fmt::format("{:08x}", static_cast<uint32_t>(random()));
  return name;
}

bool is_visitor(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_own_host(std::string_view host) {
  const std::string name = without_port(host);
  in6_addr address;
  return inet_pton(AF_INET, name.c_str(), &address) == 1 || inet_pton(AF_INET6, name.c_str(), &address) == 1 ||
         name == "localhost" || (!name.empty() && name == own_name());
}

}  // namespace convssm::serve
