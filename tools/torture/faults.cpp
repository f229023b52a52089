// Runs a program to a point counted in its calls on files, where it is killed or the call fails, and prints its exit code and
// the number of calls:
//   faults LOG CALL ERRNO ALL SECONDS PROGRAM ARGUMENT...
// CALL 0: nothing happens. ERRNO 0: it is killed. ALL 1: all calls from that one on fail.
#include <cstdio>
#include <cstdlib>

#include "tests/cli/file_calls.h"

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const convssm::FilePoint point{std::atol(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]) != 0};
  const auto seconds = static_cast<unsigned>(std::atoi(argv[5]));
  const convssm::FileRun run = convssm::run_to_point([&] { execv(argv[6], argv + 6); }, argv[1], point, seconds);
  std::printf("%d %ld\n", run.code, run.calls);
  return 0;
}
