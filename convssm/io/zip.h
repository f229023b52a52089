// The ZIP container of .npz files: stored and deflated members, with ZIP64. Nothing is extracted to disk.
// The directory is validated as a whole when the file is opened; a member is read as a stream whose checksum is
// verified at its end. Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
// Not libzip: it pulls what it writes at the end, where forecasts come frame by frame; it does not say where a stored
// member lies, which several threads read windows of; and it takes overlapping or cut members for good ones.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convssm/base/atomic_file.h"
#include "convssm/io/source.h"

namespace convssm::io {

enum class ZipMethod : uint16_t { stored = 0, deflated = 8 };

struct ZipMember {
  std::string name;
  ZipMethod method = ZipMethod::stored;
  uint16_t flags = 0;
  uint32_t crc = 0;
  uint64_t compressed_size = 0;
  uint64_t size = 0;
  uint64_t header_offset = 0;
  uint64_t data_offset = 0;
};

class ZipFile {
 public:
  explicit ZipFile(std::shared_ptr<const Source> source);

  const std::string& name() const { return source_->name(); }
  const std::vector<ZipMember>& members() const { return members_; }

  // The member's content; the reader is named "archive.zip('member')".
  std::unique_ptr<Reader> open(const ZipMember& member) const;

 private:
  std::shared_ptr<const Source> source_;
  std::vector<ZipMember> members_;
};

// Writes an archive whole or not at all: add() members, then commit(). ZIP64 where sizes need it.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : file_(path) {}

  // Adds a member whose content is `head` followed by `body`. The name must be new to the archive.
  void add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> body, bool compress);

  // A stored member chunk by chunk: begin(), `size` bytes in any number of append(), end().
  void begin(const std::string& name, uint64_t size);
  void append(std::span<const std::byte> bytes);
  void end();

  void commit();

 private:
  void write(std::span<const std::byte> bytes);
  void write(const std::string& bytes) { write(std::as_bytes(std::span(bytes))); }
  void require_closed(std::string_view what) const;
  void write_deflated(std::span<const std::byte> head, std::span<const std::byte> body);

  AtomicFile file_;
  uint64_t position_ = 0;
  std::vector<ZipMember> members_;
  bool open_ = false;  // between begin() and end(): the last member
};

}  // namespace convssm::io
