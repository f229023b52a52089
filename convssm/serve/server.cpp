// libwebsockets calls one function for everything that happens, on the thread that serves. It is C: nothing may throw into it.
#include "convssm/serve/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <libwebsockets.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/base/log.h"
#include "convssm/serve/page.h"

namespace convssm::serve {
namespace {

constexpr std::string_view kWalk = "/walk";
constexpr int kClose = -1, kGoOn = 0;  // what a callback answers
constexpr int64_t kMostConnections = 4096;
constexpr rlim_t kOtherFiles = 128;  // that this process may have open beside connections
constexpr size_t kPiece = 64 << 10;  // of a page that is handed to the library at once

constexpr const char* kNoRecording = "there is no such recording; it goes with its visitor";
constexpr const char* kSecurity =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri "
    "'none'; form-action 'none'; frame-ancestors 'none'";

struct Connection {
  uint64_t serial = 0;                      // wsi are used again
  std::string visitor;                      // of a WebSocket
  std::string incoming;                     // what came of a message so far
  bool waits = false;                       // for the system to take more: the client does not read
  bool walk = false;                        // a WebSocket
  std::string outgoing;                     // LWS_PRE bytes for the library, then what is to be sent
  bool ready = false;                       // `outgoing` is complete
  bool binary = false;                      // it is pixels
  std::shared_ptr<const std::string> page;  // what a GET is answered by
  size_t sent = 0;                          // bytes of it
};

// What the thread of the model has made for a connection.
struct Answer {
  lws* wsi = nullptr;
  uint64_t serial = 0;
  std::string visitor;
  Reply reply;
  bool to_get = false;                           // not to a message
  std::shared_ptr<const std::string> recording;  // that was asked for; null if there is none
};

std::string text_of(lws* wsi, lws_token_indexes token) {
  std::string text(static_cast<size_t>(std::max(lws_hdr_total_length(wsi, token), 0)) + 1, '\0');
  const int length = lws_hdr_copy(wsi, text.data(), static_cast<int>(text.size()), token);
  text.resize(static_cast<size_t>(std::max(length, 0)));
  return text;
}

// "" if this machine is meant and the page is ours, otherwise why not.
const char* problem_of(lws* wsi) {
  const std::string host = text_of(wsi, WSI_TOKEN_HOST), origin = text_of(wsi, WSI_TOKEN_ORIGIN);
  if (!is_own_host(host)) return "this server answers to addresses in numbers, localhost and the name of its machine";
  if (!origin.empty() && origin != "http://" + host) return "pages of other servers may not ask this one";
  return "";
}

std::string with_room(std::string_view bytes) {
  std::string out(LWS_PRE, '\0');
  out += bytes;
  return out;
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()) + LWS_PRE; }

bool add_header(lws* wsi, const char* name, std::string_view value, unsigned char** at, unsigned char* end) {
  return lws_add_http_header_by_name(wsi, reinterpret_cast<const unsigned char*>(name),
                                     reinterpret_cast<const unsigned char*>(value.data()),
                                     static_cast<int>(value.size()), at, end) == 0;
}

// Of a process that may have few files open by default, and more if it asks.
int64_t most_connections() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t wanted = static_cast<rlim_t>(kMostConnections) + kOtherFiles;
  if (files.rlim_cur < wanted) {
    files.rlim_cur = std::min(files.rlim_max, wanted);
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
  }
  const rlim_t room = files.rlim_cur > 2 * kOtherFiles ? files.rlim_cur - kOtherFiles : kOtherFiles;
  return static_cast<int64_t>(std::min<rlim_t>(room, kMostConnections));
}

void check(const ServerOptions& o) {
  in6_addr address;
  if (inet_pton(AF_INET, o.bind.c_str(), &address) != 1 && inet_pton(AF_INET6, o.bind.c_str(), &address) != 1) {
    fail(ErrorKind::usage, "--bind must be an address in numbers, such as 127.0.0.1 or 0.0.0.0, got '{}'", o.bind);
  }
  if (o.port < 0 || o.port > 65535) fail(ErrorKind::usage, "--port must be from 0 to 65535, got {}", o.port);
}

}  // namespace

bool is_loopback(const std::string& address) {
  in_addr number{};
  return address == "::1" || (inet_pton(AF_INET, address.c_str(), &number) == 1 && ntohl(number.s_addr) >> 24 == 127);
}

class Server::Inside {
 public:
  Inside(const ServerOptions& options, Handlers handlers)
      : options_(options), handlers_(std::move(handlers)), most_(most_connections()) {
    check(options);
    lws_set_log_level(0, nullptr);  // what matters is said here
    lws_context_creation_info info{};
    info.iface = options_.bind.c_str();
    info.port = static_cast<int>(options_.port);
    info.protocols = protocols_;
    info.user = this;
    info.options = options_.bind.find(':') == std::string::npos ? LWS_SERVER_OPTION_DISABLE_IPV6 : 0;
    info.timeout_secs = static_cast<unsigned>(options_.patience);
    info.timeout_secs_ah_idle = info.timeout_secs;
    info.retry_and_idle_policy = &pings_;
    context_ = lws_create_context(&info);
    port_ = context_ != nullptr ? lws_get_vhost_listen_port(lws_get_vhost_by_name(context_, "default")) : 0;
    if (port_ <= 0) {
      if (context_ != nullptr) lws_context_destroy(context_);
      fail(ErrorKind::io,
           "cannot listen on port {} of {}: another program may have it, or this machine does not have the address. "
           "Give "
           "--port N, or --port 0 for any that is free",
           options_.port, options_.bind);
    }
    thread_ = std::thread([this] { serve(); });
  }

  ~Inside() {
    stop_ = true;
    lws_cancel_service(context_);
    thread_.join();
    lws_context_destroy(context_);
  }

  int port() const { return port_; }
  const std::string& bind() const { return options_.bind; }

 private:
  static int call(lws* wsi, lws_callback_reasons reason, void*, void* in, size_t size) {
    auto* inside = static_cast<Inside*>(lws_context_user(lws_get_context(wsi)));
    try {
      return inside->happened(wsi, reason, static_cast<const char*>(in), size);
    } catch (const std::exception& error) {
      log_error("{}", error.what());
      return kClose;
    }
  }

  void serve() {
    while (!stop_) lws_service(context_, 0);
  }

  int happened(lws* wsi, lws_callback_reasons reason, const char* in, size_t size) {
    switch (reason) {
      case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
        return open_ < most_ ? kGoOn : kClose;
      case LWS_CALLBACK_WSI_CREATE:
        ++open_;
        return kGoOn;
      case LWS_CALLBACK_WSI_DESTROY:
        --open_;
        return kGoOn;
      case LWS_CALLBACK_HTTP:
        return got_request(wsi, in);
      case LWS_CALLBACK_HTTP_WRITEABLE:
        return write_page(wsi);
      case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return got_upgrade(wsi, in);
      case LWS_CALLBACK_ESTABLISHED:
        connection(wsi).walk = true;
        ++walks_;
        wait_for_visitor(wsi);
        return kGoOn;
      case LWS_CALLBACK_RECEIVE:
        return got_message(wsi, std::string_view(in, size));
      case LWS_CALLBACK_SERVER_WRITEABLE:
        return write_answer(wsi);
      case LWS_CALLBACK_CLOSED:
      case LWS_CALLBACK_CLOSED_HTTP:
        gone(wsi);
        return kGoOn;
      case LWS_CALLBACK_RAW_ADOPT:
        return kClose;
      case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        take_answers();
        return kGoOn;
      default:
        return kGoOn;
    }
  }

  Connection& connection(lws* wsi) {
    Connection& c = connections_[wsi];
    if (c.serial == 0) c.serial = ++serial_;
    return c;
  }

  void gone(lws* wsi) {
    const auto found = connections_.find(wsi);
    if (found == connections_.end()) return;
    const Connection& c = found->second;
    if (c.walk) --walks_;
    if (c.waits && !stop_) log_warning("visitor {} does not read and was dropped", c.visitor.substr(0, 6));
    connections_.erase(found);
  }

  // --- pages

  int got_request(lws* wsi, std::string_view path) {
    if (const char* problem = problem_of(wsi); *problem != '\0') return refuse(wsi, 403, problem);
    if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) <= 0) return refuse(wsi, 405, "expected GET");
    if (path == kWalk) return refuse(wsi, 426, "expected a WebSocket");
    for (const PageFile& file : page_files()) {
      if (path == file.path) return send(wsi, 200, file.type, std::make_shared<const std::string>(file.content));
    }
    constexpr std::string_view head = "/recording/", tail = ".gif";
    if (!path.starts_with(head) || !path.ends_with(tail)) return refuse(wsi, 404, "there is no such page; it is at /");
    const std::string_view visitor = path.substr(head.size(), path.size() - head.size() - tail.size());
    return is_visitor(visitor) ? ask_recording(wsi, std::string(visitor)) : refuse(wsi, 404, kNoRecording);
  }

  int ask_recording(lws* wsi, const std::string& visitor) {
    handlers_.post([this, wsi, serial = connection(wsi).serial, visitor] {
      answer({wsi, serial, visitor, Reply(), true, handlers_.recording(visitor)});
    });
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, 60);
    return kGoOn;
  }

  int refuse(lws* wsi, unsigned status, std::string_view why) {
    return send(wsi, status, "text/plain; charset=utf-8",
                std::make_shared<const std::string>(fmt::format("{}\n", why)));
  }

  int send(lws* wsi, unsigned status, const char* type, std::shared_ptr<const std::string> body,
           bool attached = false) {
    std::vector<unsigned char> head(LWS_PRE + 2048);
    unsigned char *start = head.data() + LWS_PRE, *at = start, *end = head.data() + head.size();
    const bool made =
        lws_add_http_common_headers(wsi, status, type, body->size(), &at, end) == 0 &&
        add_header(wsi, "content-security-policy:", kSecurity, &at, end) &&
        add_header(wsi, "x-content-type-options:", "nosniff", &at, end) &&
        add_header(wsi, "referrer-policy:", "no-referrer", &at, end) &&
        add_header(wsi, "cross-origin-resource-policy:", "same-origin", &at, end) &&
        add_header(wsi, "cache-control:", "no-store", &at, end) &&
        (!attached || add_header(wsi, "content-disposition:", "attachment; filename=\"walk.gif\"", &at, end));
    if (!made || lws_finalize_write_http_header(wsi, start, &at, end) != 0) return kClose;
    Connection& c = connection(wsi);
    c.page = std::move(body);
    return wait_for_room(wsi);
  }

  int wait_for_room(lws* wsi) {
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, static_cast<int>(options_.patience));
    lws_callback_on_writable(wsi);
    return kGoOn;
  }

  // A piece each time that the system took the one before: a slow client is waited for as long as it reads. One answer to a connection.
  int write_page(lws* wsi) {
    Connection& c = connection(wsi);
    if (!c.page) return kGoOn;
    if (c.sent == c.page->size()) return kClose;
    const std::string_view piece = std::string_view(*c.page).substr(c.sent, kPiece);
    c.outgoing = with_room(piece);
    c.sent += piece.size();
    const bool last = c.sent == c.page->size();
    if (lws_write(wsi, bytes_of(c.outgoing), piece.size(), last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < 0)
      return kClose;
    return wait_for_room(wsi);
  }

  // --- walks

  // Above 0: refused, with an answer.
  int got_upgrade(lws* wsi, const char* to) {
    const auto refused = [wsi](unsigned status, const char* why) {
      return lws_return_http_status(wsi, status, why) == 0 ? 1 : kClose;
    };
    if (const char* problem = problem_of(wsi); *problem != '\0') return refused(403, problem);
    if (strcasecmp(to, "websocket") != 0 || text_of(wsi, WSI_TOKEN_GET_URI) != kWalk) return refused(404, "not here");
    if (walks_ < options_.walks) return kGoOn;
    log_warning("a visitor was refused: {} are connected", walks_);
    return refused(503, "all places are taken; come back later");
  }

  int closed_for(lws* wsi, lws_close_status status, std::string why) {
    lws_close_reason(wsi, status, reinterpret_cast<unsigned char*>(why.data()), why.size());
    return kClose;
  }

  int got_message(lws* wsi, std::string_view part) {
    Connection& c = connection(wsi);
    if (lws_frame_is_binary(wsi)) return closed_for(wsi, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "expected text");
    if (c.incoming.size() + part.size() > kLongestRequest) {
      return closed_for(wsi, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE,
                        fmt::format("expected at most {} bytes", kLongestRequest));
    }
    c.incoming += part;
    if (lws_remaining_packet_payload(wsi) > 0 || !lws_is_final_fragment(wsi)) return kGoOn;
    lws_rx_flow_control(wsi, 0);
    handlers_.post(
        [this, wsi, serial = c.serial, visitor = c.visitor, message = std::exchange(c.incoming, "")]() mutable {
          Reply reply = reply_to(visitor, message);
          answer({wsi, serial, std::move(visitor), std::move(reply), false, nullptr});
        });
    return kGoOn;
  }

  // On the thread of the model.
  Reply reply_to(std::string& visitor, const std::string& message) const {
    try {
      return handlers_.message(visitor, message);
    } catch (const Error& error) {
      return error_reply(error);
    } catch (const std::exception& error) {
      log_error("{}", error.what());
      return error_reply(error);
    }
  }

  // From the thread of the model.
  void answer(Answer made) {
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back(std::move(made));
    }
    lws_cancel_service(context_);
  }

  void take_answers() {
    std::vector<Answer> made;
    {
      const std::lock_guard lock(mutex_);
      made.swap(answers_);
    }
    for (Answer& a : made) {
      const auto found = connections_.find(a.wsi);
      if (found == connections_.end() || found->second.serial != a.serial) continue;  // it is gone
      if (a.to_get) {
        const int sent =
            a.recording ? send(a.wsi, 200, "image/gif", a.recording, true) : refuse(a.wsi, 404, kNoRecording);
        if (sent != kGoOn) lws_set_timeout(a.wsi, PENDING_TIMEOUT_HTTP_CONTENT, LWS_TO_KILL_ASYNC);
        continue;
      }
      Connection& c = found->second;
      c.visitor = a.visitor;
      c.outgoing = with_room(a.reply.bytes);
      c.binary = a.reply.binary;
      c.ready = true;
      wait_for_reader(a.wsi, c);
    }
  }

  // A walk that nobody begins takes the place of another.
  void wait_for_visitor(lws* wsi) {
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, static_cast<int>(options_.patience));
  }

  // write_answer() comes when the system takes more, or the client is dropped.
  void wait_for_reader(lws* wsi, Connection& c) {
    c.waits = true;
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, static_cast<int>(options_.patience));
    lws_callback_on_writable(wsi);
  }

  // The library keeps what the system does not take at once, and comes back here when that is gone.
  int write_answer(lws* wsi) {
    Connection& c = connection(wsi);
    c.waits = false;
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    lws_validity_confirmed(wsi);  // it reads, whatever became of the pings meanwhile
    if (c.visitor.empty()) wait_for_visitor(wsi);
    if (!c.ready) return kGoOn;
    c.ready = false;
    const int written =
        lws_write(wsi, bytes_of(c.outgoing), c.outgoing.size() - LWS_PRE, c.binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT);
    if (written < 0) return kClose;
    if (lws_partial_buffered(wsi) != 0) wait_for_reader(wsi, c);
    c.outgoing = {};
    lws_rx_flow_control(wsi, 1);
    return kGoOn;
  }

  ServerOptions options_;
  Handlers handlers_;
  int64_t most_, open_ = 0, walks_ = 0;
  const lws_protocols protocols_[2] = {{"walk", call, 0, kLongestRequest, 0, nullptr, 0}, {}};
  const lws_retry_bo_t pings_{nullptr, 0, 0, 30, 60, 0};  // a client that is gone without a word
  lws_context* context_ = nullptr;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
  std::map<lws*, Connection> connections_;
  uint64_t serial_ = 0;
  std::mutex mutex_;
  std::vector<Answer> answers_;
};

Server::Server(const ServerOptions& options, Handlers handlers)
    : inside_(std::make_unique<Inside>(options, std::move(handlers))) {}

Server::~Server() = default;

int Server::port() const { return inside_->port(); }

std::string Server::address() const {
  const bool v6 = inside_->bind().find(':') != std::string::npos;
  return v6 ? fmt::format("http://[{}]:{}/", inside_->bind(), port())
            : fmt::format("http://{}:{}/", inside_->bind(), port());
}

}  // namespace convssm::serve
