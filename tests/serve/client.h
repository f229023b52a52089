// A plain client of the server: bytes over a socket, and just enough of WebSockets (RFC 6455) to talk to it and to misbehave.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace convssm::testing {

class Socket {
 public:
  explicit Socket(int port, int receive_buffer = 0) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  Socket& operator=(Socket&&) = delete;

  bool connected() const { return connected_; }

  // Whether all of it was taken within a second.
  bool write(const std::string& bytes) const {
    for (size_t done = 0; done < bytes.size();) {
      pollfd ready{fd_, POLLOUT, 0};
      if (poll(&ready, 1, 1000) <= 0) return false;
      const ssize_t n = send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

  // Whether the other side ends the connection within this time, while nothing is read here.
  bool is_dropped(int milliseconds) const {
    pollfd ended{fd_, 0, 0};
    return poll(&ended, 1, milliseconds) > 0;
  }

  // Up to `most` bytes, "" at the end or after `milliseconds` without any.
  std::string read(size_t most, int milliseconds = 10000) const {
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, milliseconds) <= 0) return "";
    std::string bytes(most, '\0');
    const ssize_t n = recv(fd_, bytes.data(), most, 0);
    bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return bytes;
  }

  std::string read_all(int milliseconds = 10000) const {
    std::string all;
    for (std::string part; !(part = read(65536, milliseconds)).empty();) all += part;
    return all;
  }

 private:
  int fd_;
  bool connected_ = false;
};

// The whole answer, head and body.
inline std::string http(int port, const std::string& path, const std::string& method = "GET",
                        const std::string& headers = "") {
  const Socket socket(port);
  const std::string host = headers.find("Host:") == std::string::npos ? "Host: localhost\r\n" : "";
  socket.write(fmt::format("{} {} HTTP/1.1\r\n{}{}\r\n", method, path, host, headers));
  return socket.read_all();
}

struct Message {
  int opcode = -1;  // 1 text, 2 bytes, 8 close; -1: the connection has ended
  std::string bytes;
};

class WebSocket {
 public:
  explicit WebSocket(int port, const std::string& headers = "", int receive_buffer = 0)
      : socket_(port, receive_buffer) {
    const std::string host = headers.find("Host:") == std::string::npos ? "Host: localhost\r\n" : "";
    socket_.write(
        fmt::format("GET /walk HTTP/1.1\r\n{}Upgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{}\r\n",
                    host, headers));
    while (buffer_.find("\r\n\r\n") == std::string::npos) {
      const std::string part = socket_.read(4096);
      if (part.empty()) break;
      buffer_ += part;
    }
    const size_t end = buffer_.find("\r\n\r\n");
    head_ = buffer_.substr(0, end);
    buffer_.erase(0, end == std::string::npos ? end : end + 4);
  }

  bool open() const { return head_.starts_with("HTTP/1.1 101"); }
  const std::string& head() const { return head_; }
  const Socket& socket() const { return socket_; }

  // One frame; clients mask theirs, here by zeros.
  static std::string frame(int opcode, const std::string& bytes, bool final = true) {
    std::string out{static_cast<char>((final ? 0x80 : 0) | opcode)};
    const size_t n = bytes.size();
    if (n < 126) {
      out += static_cast<char>(0x80 | n);
    } else {
      const int digits = n < 65536 ? 2 : 8;
      out += static_cast<char>(0x80 | (digits == 2 ? 126 : 127));
      for (int i = digits - 1; i >= 0; --i) out += static_cast<char>(n >> (8 * i) & 0xff);
    }
    return out + std::string(4, '\0') + bytes;
  }

  bool send(const std::string& text) const { return socket_.write(frame(1, text)); }

  Message receive(int milliseconds = 10000) {
    const auto have = [&](size_t n) {
      while (buffer_.size() < n) {
        const std::string part = socket_.read(65536, milliseconds);
        if (part.empty()) return false;
        buffer_ += part;
      }
      return true;
    };
    const auto number = [&](size_t at, size_t digits) {
      size_t value = 0;
      for (size_t i = at; i < at + digits; ++i) value = value << 8 | static_cast<uint8_t>(buffer_[i]);
      return value;
    };
    if (!have(2)) return {};
    size_t n = number(1, 1), head = 2;
    if (n >= 126) {
      const size_t digits = n == 126 ? 2 : 8;
      if (!have(2 + digits)) return {};
      n = number(2, digits);
      head += digits;
    }
    if (!have(head + n)) return {};
    Message message{buffer_[0] & 0x0f, buffer_.substr(head, n)};
    buffer_.erase(0, head + n);
    return message;
  }

  Message ask(const std::string& text) { return send(text) ? receive() : Message{}; }
  // The answer in words, or those before the pixels.
  nlohmann::json ask_json(const nlohmann::json& request) {
    const Message message = ask(request.dump());
    if (message.opcode == 1) return nlohmann::json::parse(message.bytes);
    if (message.opcode != 2 || message.bytes.size() < 4) throw std::runtime_error("no answer to " + request.dump());
    size_t size = 0;
    for (size_t i = 4; i-- > 0;) size = size << 8 | static_cast<uint8_t>(message.bytes[i]);
    return nlohmann::json::parse(message.bytes.substr(4, size));
  }

 private:
  Socket socket_;
  std::string head_, buffer_;
};

}  // namespace convssm::testing
