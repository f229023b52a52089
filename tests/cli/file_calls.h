// Runs a program to a point that is counted in its system calls on files, and there kills it or lets the call fail. A process
// that is killed between two such calls leaves the same files as one that is killed at the second, so these are all the points
// there are, whatever the machine is busy with. A seccomp filter stops the program at these calls alone: the rest runs at
// full speed. Linux; failing calls on x86-64. Needs nothing but the C library: tools/torture compiles it too.
#pragma once

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace convssm {

struct FilePoint {
  long call = 0;            // counted from 1 over all threads; 0: never
  int error = 0;            // the errno with which the call fails; 0: the process is killed
  bool to_the_end = false;  // all calls from that one on fail, as on a full disk; files can still be removed
};

struct FileRun {
  int code;    // 128 + signal if it ended by one
  long calls;  // on files, up to its end
};

namespace file_calls {

// What changes files: no reading, no output to a terminal.
inline std::vector<sock_filter> filter() {
  constexpr unsigned number = offsetof(seccomp_data, nr), first = offsetof(seccomp_data, args[0]),
                     third = offsetof(seccomp_data, args[2]);
  const auto op = [](unsigned code, unsigned value, unsigned yes = 0, unsigned no = 0) {
    return sock_filter{static_cast<unsigned short>(code), static_cast<unsigned char>(yes),
                       static_cast<unsigned char>(no), value};
  };
  const auto load = [&](unsigned offset) { return op(BPF_LD | BPF_W | BPF_ABS, offset); };
  const auto allow = op(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), trace = op(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  std::vector<sock_filter> code{load(number)};
  for (const unsigned call : {
           SYS_renameat,
           SYS_renameat2,
           SYS_unlinkat,
           SYS_fsync,
           SYS_fdatasync,
           SYS_ftruncate,
           SYS_fallocate,
           SYS_mkdirat,
           SYS_linkat,
           SYS_symlinkat,
#ifdef SYS_rename
           SYS_rename,
           SYS_unlink,
           SYS_rmdir,
           SYS_mkdir,
           SYS_link,
           SYS_symlink,
#endif
       }) {
    code.insert(code.end(), {op(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), trace});
  }
  for (const unsigned call : {SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev}) {
    code.insert(code.end(), {op(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4), load(first),
                             op(BPF_JMP | BPF_JGT | BPF_K, STDERR_FILENO, 0, 1), trace, allow});
  }
  code.insert(code.end(), {op(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3), load(third),
                           op(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1), trace, allow});
  return code;
}

[[noreturn]] inline void become(const std::function<void()>& program, const std::string& log, unsigned seconds) {
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  alarm(seconds);
  std::vector<sock_filter> code = filter();
  sock_fprog rules{static_cast<unsigned short>(code.size()), code.data()};
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(SIGSTOP);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &rules) == 0) program();
  _exit(127);
}

inline bool fail_call(pid_t thread, int error) {
#if defined(__x86_64__)
  user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return false;
  for (const long removal : {SYS_unlink, SYS_unlinkat, SYS_rmdir}) {  // a full disk does not keep from freeing it
    if (registers.orig_rax == static_cast<unsigned long long>(removal)) return false;
  }
  registers.orig_rax = static_cast<unsigned long long>(-1);  // no such call: it is left out
  registers.rax = static_cast<unsigned long long>(-static_cast<long long>(error));
  return ptrace(PTRACE_SETREGS, thread, nullptr, &registers) == 0;
#else
  (void)thread, (void)error;
  return false;
#endif
}

inline int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace file_calls

// `program` runs in a process of its own and ends it: by exec or exit. What it says goes to the end of `log`. It is ended by
// SIGALRM after `seconds`.
inline FileRun run_to_point(const std::function<void()>& program, const std::string& log, const FilePoint& point,
                            unsigned seconds = 300) {
  const pid_t child = fork();
  if (child == 0) file_calls::become(program, log, seconds);
  int status = 0;
  waitpid(child, &status, 0);  // it has stopped itself
  ptrace(PTRACE_SETOPTIONS, child, nullptr,
         PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL);
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  FileRun result{127, 0};
  for (pid_t thread = waitpid(-1, &status, __WALL); thread > 0; thread = waitpid(-1, &status, __WALL)) {
    if (!WIFSTOPPED(status)) {
      if (thread == child) result.code = file_calls::exit_code(status);
      continue;
    }
    const int event = status >> 16, signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_SECCOMP) {
      const long call = ++result.calls;
      const bool hit = point.call > 0 && (call == point.call || (point.to_the_end && call > point.call));
      if (hit && point.error == 0) kill(child, SIGKILL);
      if (hit && point.error != 0) file_calls::fail_call(thread, point.error);
    }
    const bool own = event != 0 || signal == SIGSTOP || signal == SIGTRAP;  // of tracing, not the program's
    ptrace(PTRACE_CONT, thread, nullptr, static_cast<long>(own ? 0 : signal));
  }
  return result;
}

}  // namespace convssm
