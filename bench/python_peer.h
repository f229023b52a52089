// A Python process that does the same work in PyTorch, or by another package, run in turns with ours: what users would have instead.
// Its script reads names of tasks from stdin, does each, and answers with a line "done",
// with numbers behind it if it has any.
//   auto peer = PythonPeer::start(script, {"2"});   if (peer) peer->run("ssim");
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace convssm::bench {

class PythonPeer {
 public:
  // Null if there is no python3 with the packages ("torch", "xarray, h5py"): $CONVSSM_PYTHON, python3 and /usr/bin/python3 are tried.
  static std::unique_ptr<PythonPeer> start(const std::string& script, const std::vector<std::string>& arguments,
                                           const std::string& packages = "torch");
  ~PythonPeer();
  PythonPeer(const PythonPeer&) = delete;
  PythonPeer& operator=(const PythonPeer&) = delete;

  // One run of the work, to its end; the numbers of its answer. Error(data) if the process fails.
  std::vector<double> run(const std::string& work);

  const std::string& version() const { return version_; }  // "PyTorch 1.13.0"

 private:
  PythonPeer(const std::string& python, const std::string& script, const std::vector<std::string>& arguments);
  std::string read_line();

  int process_ = -1;
  std::FILE* in_ = nullptr;   // what it writes
  std::FILE* out_ = nullptr;  // what it reads
  std::string version_;
};

}  // namespace convssm::bench
