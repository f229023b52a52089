// The folder of a training run and its only writer:
//   config.yaml  log.jsonl  status.json  checkpoints/  samples/  tensorboard/  report.html  run.lock
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace convssm::run {

class RunFolder {
 public:
  // Makes the folder if needed, locks it for this process and removes what killed processes left in it; the lock ends with
  // the process, however it ends.
  // Error(usage) if another process holds it, Error(io) if the folder cannot be written.
  explicit RunFolder(const std::string& path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Whether it is still the folder that was locked: it may have been deleted or moved, and another be in its place.
  bool there() const;

  std::string path(const std::string& name = "") const;  // of something inside
  bool has_checkpoints() const;

  // Adds a line to log.jsonl, whole or not at all.
  void log(const nlohmann::json& line);

  // Removes the lines of log.jsonl after `step`, which a resumed run will write again, and a line cut off by a crash.
  void forget_log_after(int64_t step);

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace convssm::run
