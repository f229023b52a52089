// One process for the whole group, talked to over two pipes, so that PyTorch is imported and warmed up once. Both work
// in turns, never at the same time. A process that died is noticed by the end of its output.
#include "bench/python_peer.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "convssm/base/error.h"

namespace convssm::bench {
namespace {

bool has(const std::string& python, const std::string& packages) {
  return std::system(fmt::format("{} -c 'import {}' > /dev/null 2>&1", python, packages).c_str()) == 0;
}

std::string find_python(const std::string& packages) {
  const char* chosen = std::getenv("CONVSSM_PYTHON");
  for (const std::string& python :
       {std::string(chosen == nullptr ? "" : chosen), std::string("python3"), std::string("/usr/bin/python3")}) {
    if (!python.empty() && has(python, packages)) return python;
  }
  return "";
}

using Pipe = std::array<int, 2>;

Pipe make_pipe() {
  Pipe ends;
  if (pipe(ends.data()) != 0) fail_io("cannot make a pipe");
  return ends;
}

}  // namespace

std::unique_ptr<PythonPeer> PythonPeer::start(const std::string& script, const std::vector<std::string>& arguments,
                                              const std::string& packages) {
  const std::string python = find_python(packages);
  if (python.empty()) return nullptr;
  std::unique_ptr<PythonPeer> peer(new PythonPeer(python, script, arguments));
  peer->version_ = peer->read_line();
  return peer;
}

PythonPeer::PythonPeer(const std::string& python, const std::string& script,
                       const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a process that ended is told by its missing answer
  const Pipe to = make_pipe(), from = make_pipe();
  std::vector<std::string> words = {python, "-u", "-c", script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  process_ = fork();
  if (process_ < 0) fail_io("cannot start " + python);
  if (process_ == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(to[0]), close(from[1]);
  out_ = fdopen(to[1], "w"), in_ = fdopen(from[0], "r");
}

PythonPeer::~PythonPeer() {
  std::fclose(out_);  // the end of its input ends it
  std::fclose(in_);
  waitpid(process_, nullptr, 0);
}

std::string PythonPeer::read_line() {
  std::string line;
  int c = 0;
  while ((c = std::fgetc(in_)) != EOF && c != '\n') line += static_cast<char>(c);
  if (c == EOF) fail(ErrorKind::data, "[bench] the Python process ended early; its message is above");
  return line;
}

std::vector<double> PythonPeer::run(const std::string& work) {
  std::fprintf(out_, "%s\n", work.c_str());
  std::fflush(out_);
  const std::string answer = read_line();
  std::istringstream words(answer);
  std::string first;
  words >> first;
  std::vector<double> numbers;
  for (double number = 0; words >> number;) numbers.push_back(number);
  if (first != "done" || !words.eof()) {
    fail(ErrorKind::data, "[bench] expected 'done' and numbers of the Python process, got '{}'", answer);
  }
  return numbers;
}

}  // namespace convssm::bench
