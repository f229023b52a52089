// Chromium without a window, driven by its DevTools protocol over two pipes: no port, no second program.
// https://chromedevtools.github.io/devtools-protocol
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace convssm::testing {

// "" if this machine has none; tools/setup.sh installs the first.
inline std::string find_browser() {
  for (const char* path : {"/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser",
                           "/usr/bin/google-chrome"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

class Browser {
 public:
  // One tab, empty. `profile` is a folder for its files.
  explicit Browser(const std::string& profile) {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) throw std::runtime_error("no pipes");
    const std::string program = find_browser(), data = "--user-data-dir=" + profile;
    child_ = fork();
    if (child_ == 0) {
      const int from = fcntl(down[0], F_DUPFD, 10), to = fcntl(up[1], F_DUPFD, 10);  // away from 3 and 4
      dup2(from, 3);
      dup2(to, 4);
      dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
      execl(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--remote-debugging-pipe", data.c_str(), "about:blank", nullptr);
      _exit(127);
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
    const auto target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
    session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
    call("Runtime.enable");
    call("Log.enable");
    call("Page.enable");
  }
  ~Browser() {
    close(to_);  // which ends it
    close(from_);
    for (int i = 0; i < 50 && waitpid(child_, nullptr, WNOHANG) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open_page(const std::string& url) { call("Page.navigate", {{"url", url}}); }

  void set_size(int width, int height, bool phone) {
    call("Emulation.setDeviceMetricsOverride",
         {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", phone}});
  }

  // The value of an expression of the page.
  nlohmann::json evaluate(const std::string& expression) {
    const auto out =
        call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
    if (out.contains("exceptionDetails")) throw std::runtime_error(out.dump());
    return out["result"].value("value", nlohmann::json());
  }

  // Whether an expression becomes true within 10 seconds.
  bool wait_for(const std::string& expression) {
    for (int i = 0; i < 500; ++i) {
      if (evaluate("Boolean(" + expression + ")") == true) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  void key_down(const std::string& key, bool shift = false) { send_key("rawKeyDown", key, shift); }
  void key_up(const std::string& key, bool shift = false) { send_key("keyUp", key, shift); }
  void press(const std::string& key, bool shift = false) {
    key_down(key, shift);
    key_up(key, shift);
  }

  // What the page wrote to the console, mistakes and refused requests included.
  const std::vector<std::string>& console() const { return console_; }

  nlohmann::json call(const std::string& method, const nlohmann::json& parameters = nlohmann::json::object()) {
    nlohmann::json command = {{"id", ++id_}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) command["sessionId"] = session_;
    const std::string text = command.dump() + '\0';
    if (write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("browser gone");
    while (true) {
      const auto message = next_message();
      if (message.value("id", 0) != id_) {
        take_event(message);
      } else if (message.contains("error")) {
        throw std::runtime_error(method + ": " + message["error"].dump());
      } else {
        return message["result"];
      }
    }
  }

 private:
  void send_key(const char* type, const std::string& key, bool shift) {
    const int code = key == "Backspace"    ? 8
                     : key == "ArrowUp"    ? 38
                     : key == "ArrowLeft"  ? 37
                     : key == "ArrowRight" ? 39
                                           : 0;
    call("Input.dispatchKeyEvent",
         {{"type", type}, {"key", key}, {"windowsVirtualKeyCode", code}, {"modifiers", shift ? 8 : 0}});
  }

  void take_event(const nlohmann::json& message) {
    const std::string method = message.value("method", "");
    if (method == "Runtime.consoleAPICalled" || method == "Runtime.exceptionThrown" || method == "Log.entryAdded") {
      console_.push_back(message["params"].dump());
    }
  }

  nlohmann::json next_message() {
    size_t end;
    while ((end = buffer_.find('\0')) == std::string::npos) {
      pollfd ready{from_, POLLIN, 0};
      char part[65536];
      const ssize_t n = poll(&ready, 1, 30000) > 0 ? read(from_, part, sizeof part) : 0;
      if (n <= 0) throw std::runtime_error("the browser says nothing");
      buffer_.append(part, static_cast<size_t>(n));
    }
    const std::string text = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return nlohmann::json::parse(text);
  }

  pid_t child_ = 0;
  int to_ = -1, from_ = -1, id_ = 0;
  std::string session_, buffer_;
  std::vector<std::string> console_;
};

}  // namespace convssm::testing
