// The exit code of a command that ended well but not with 0, such as training that was stopped by Ctrl-C.
#pragma once

namespace convssm::cli {

inline int& exit_status() {
  static int status = 0;
  return status;
}
inline void set_exit_status(int status) { exit_status() = status; }

}  // namespace convssm::cli
