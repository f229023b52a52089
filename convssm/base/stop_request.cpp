// The handler may only do what is safe inside a signal: a lock-free atomic, write() and _exit(). The signal's number is
// kept, since a program that a signal ended should exit with 128 plus that number.
#include "convssm/base/stop_request.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace convssm {
namespace {

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

void take(int signal) {
  if (received.exchange(signal) != 0) _exit(128 + signal);
  constexpr char text[] = "\nfinishing what is under way, then stopping; once more to stop at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof(text) - 1);
}

}  // namespace

StopRequest::StopRequest() {
  received = 0;
  before_int_ = std::signal(SIGINT, take);
  before_term_ = std::signal(SIGTERM, take);
}

StopRequest::~StopRequest() {
  std::signal(SIGINT, before_int_);
  std::signal(SIGTERM, before_term_);
}

int StopRequest::signal() const { return received; }

int StopRequest::exit_code() const { return received == 0 ? 0 : 128 + received; }

}  // namespace convssm
