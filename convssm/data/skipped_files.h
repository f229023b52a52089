// What could not be read and is left out where that is wanted (data.on_error: skip): counted, the first ones named.
#pragma once

#include <string>
#include <vector>

#include "convssm/base/error.h"

namespace convssm::data {

// Whether an error is of what was read, not of how it was asked for.
inline bool is_of_files(const Error& error) { return error.kind() == ErrorKind::data || error.kind() == ErrorKind::io; }

class SkippedFiles {
 public:
  // Throws the error on if it is not of files.
  void add(const std::string& name, const Error& error);

  bool none() const { return names_.empty(); }
  size_t count() const { return names_.size(); }

  // "5 of 900 files cannot be read and are left out: 'a.npz', ...; the first: reason"
  std::string text(size_t files, const char* things = "files") const;

 private:
  std::vector<std::string> names_;
  std::string reason_;  // of the first
};

// "'a', 'b', ...": the first five of them.
std::string some_of(const std::vector<std::string>& names);

}  // namespace convssm::data
