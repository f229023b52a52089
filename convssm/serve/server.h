// The connections: a page, its WebSocket, and the recordings, by libwebsockets. It knows no model: what requests mean is the
// handlers'.
//   GET /, /page.css, ...          from the program itself; no file of the machine is served
//   GET /walk                      the WebSocket (serve/protocol.h)
//   GET /recording/VISITOR.gif
// One thread has all connections and waits for none: one that says nothing, or does not read, costs a socket until it is
// dropped. Each has one request under way; what it sends meanwhile is not read yet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "convssm/serve/protocol.h"

namespace convssm::serve {

struct ServerOptions {
  std::string bind = "127.0.0.1";  // an address in numbers
  int64_t port = 8723;             // 0: any that is free
  int64_t walks = 48;              // WebSockets at the same time
  int64_t patience = 5;            // seconds that a client may take to ask, or to read an answer
};

struct Handlers {
  // Runs work, not at once but in the order of asking, on the thread of the model. From then on the others are called.
  std::function<void(std::function<void()> work)> post;

  // The answer to a message; `visitor` belongs to the connection, "" at first. May throw what error_reply() tells.
  std::function<Reply(std::string& visitor, std::string_view message)> message;

  // The animation of a visitor; null if there is none.
  std::function<std::shared_ptr<const std::string>(const std::string& visitor)> recording;
};

class Server {
 public:
  // Listens from now on. Error(usage) for wrong options, Error(io) if the port cannot be had.
  Server(const ServerOptions& options, Handlers handlers);
  ~Server();  // closes all connections; work that was posted must not run any more
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  std::string address() const;  // "http://127.0.0.1:8723/"

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

// Whether only programs of this machine can reach an address.
bool is_loopback(const std::string& address);

}  // namespace convssm::serve
