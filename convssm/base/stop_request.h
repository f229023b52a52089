// Ctrl-C and SIGTERM as a question that a loop asks between two steps. The first signal only sets the answer; a second
// one ends the process at once.
//   StopRequest stop;   while (!stop.asked()) step();
#pragma once

namespace convssm {

class StopRequest {
 public:
  StopRequest();   // from now on signals are taken; one at a time
  ~StopRequest();  // as it was before
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool asked() const { return signal() != 0; }
  int signal() const;     // SIGINT, SIGTERM or 0
  int exit_code() const;  // 128 + signal, as shells count

 private:
  void (*before_int_)(int);
  void (*before_term_)(int);
};

}  // namespace convssm
