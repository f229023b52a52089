// A folder whose content changes as a whole or not at all: made beside its target, filled, exchanged with it in one step. Also a place
// for one file that a library writes by its name.
// A crash, a full disk or an error on the way leaves the old folder as it was.
#pragma once

#include <span>
#include <string>

namespace convssm {

class StagedFolder {
 public:
  // An empty folder beside `target`, which need not exist. Removes what killed processes left there. Error(io).
  explicit StagedFolder(const std::string& target);
  ~StagedFolder();  // without commit(): the target stays untouched
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  std::string path(const std::string& name) const { return staged_ + "/" + name; }

  // Puts it in the place of the target. What the target holds under names other than `own` stays there.
  void commit(std::span<const char* const> own);

  // The same, on the disk before its name is, and nothing of the target stays.
  void commit_whole();

  // Puts one file of it in the place of the target, which is a file too.
  void commit_file(const std::string& name);

 private:
  void keep_others(std::span<const char* const> own) const;

  std::string target_, staged_;
  int lock_ = -1;  // tells others that it is in use
};

// Exchanges the two, so that the old content, if there was any, is at `staged`; false with errno, and nothing changed, if that
// cannot be done. Not in one step: as on file systems that can rename only.
bool exchange_folders(const std::string& staged, const std::string& target, bool in_one_step = true);

}  // namespace convssm
