// A file that appears whole or not at all: written beside its target, flushed to the disk, renamed over it.
// A crash, a full disk or Ctrl-C leaves the old file as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace convssm {

class AtomicFile {
 public:
  // Opens a temporary file in the folder of `path`. Throws Error(io) if that fails.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // without commit(): removes the temporary file, the target stays untouched
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void seek(uint64_t offset);  // the next write() goes there, over what is there: for sizes known at the end only
  void commit();               // flush, fsync, rename, fsync of the folder

 private:
  std::string path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

// Removes the temporary files that killed processes left in a folder; not those of a process that is still writing.
void remove_temporary_files(const std::string& folder);

// The whole of `text` as the new content of `path`.
void replace_file(const std::string& path, const std::string& text);

}  // namespace convssm
