// pread, not mmap: a file that shrinks while it is read gives an error here and would give SIGBUS there. Opened with
// O_NONBLOCK, since to open a named pipe would otherwise wait for its writer; what is not a regular file is then
// refused.
#include "convssm/io/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace convssm::io {
namespace {

// Closes a file descriptor on every way out.
struct Descriptor {
  explicit Descriptor(int number) : value(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value >= 0) close(value);
  }
  int value;
};

class FileSource : public Source {
 public:
  FileSource(std::string path, uint64_t size, std::unique_ptr<Descriptor> descriptor)
      : Source(std::move(path), size), descriptor_(std::move(descriptor)) {}

 private:
  void fetch(uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t got = pread(descriptor_->value, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_io(fmt::format("cannot read '{}'", name()));
      if (got == 0) fail(offset, "the file became shorter while it was read");
      offset += static_cast<uint64_t>(got);
      out = out.subspan(static_cast<size_t>(got));
    }
  }

  std::unique_ptr<Descriptor> descriptor_;
};

class MemorySource : public Source {
 public:
  MemorySource(std::string name, std::span<const std::byte> bytes)
      : Source(std::move(name), bytes.size()), bytes_(bytes) {}

 private:
  void fetch(uint64_t offset, std::span<std::byte> out) const override {
    std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
  }

  std::span<const std::byte> bytes_;
};

class SourceReader : public Reader {
 public:
  explicit SourceReader(std::shared_ptr<const Source> source)
      : Reader(source->name(), source->size()), source_(std::move(source)) {}

 private:
  void fetch(std::span<std::byte> out) override { source_->read(position(), out); }

  std::shared_ptr<const Source> source_;
};

std::string too_short(uint64_t wanted, uint64_t left) {
  return fmt::format("expected {} more bytes, but only {} are left: the file is cut short or damaged", wanted, left);
}

}  // namespace

void Source::read(uint64_t offset, std::span<std::byte> out) const {
  const uint64_t left = offset < size_ ? size_ - offset : 0;
  if (out.size() > left) fail(offset, "{}", too_short(out.size(), left));
  if (!out.empty()) fetch(offset, out);
}

void Reader::read(std::span<std::byte> out) {
  if (out.size() > size_ - position_) fail(position_, "{}", too_short(out.size(), size_ - position_));
  fetch(out);
  position_ += out.size();
}

void Reader::finish() {
  if (position_ != size_) fail(position_, "{} bytes too many at the end", size_ - position_);
  check_end();
}

void for_each_block(const Source& source, uint64_t offset,
                    const std::function<void(std::span<const std::byte>)>& take) {
  std::vector<std::byte> block(1 << 20);
  for (; offset < source.size(); offset += block.size()) {
    block.resize(std::min<uint64_t>(block.size(), source.size() - offset));
    source.read(offset, block);
    take(block);
  }
}

std::shared_ptr<const Source> open_source(const std::string& path) {
  auto descriptor = std::make_unique<Descriptor>(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (descriptor->value < 0 || fstat(descriptor->value, &status) != 0) fail_io(fmt::format("cannot open '{}'", path));
  if (S_ISDIR(status.st_mode)) convssm::fail(ErrorKind::io, "cannot read '{}': it is a folder, not a file", path);
  if (!S_ISREG(status.st_mode)) convssm::fail(ErrorKind::io, "cannot read '{}': it is not a regular file", path);
  return std::make_shared<FileSource>(path, static_cast<uint64_t>(status.st_size), std::move(descriptor));
}

std::shared_ptr<const Source> memory_source(std::string name, std::span<const std::byte> bytes) {
  return std::make_shared<MemorySource>(std::move(name), bytes);
}

std::unique_ptr<Reader> make_reader(std::shared_ptr<const Source> source) {
  return std::make_unique<SourceReader>(std::move(source));
}

}  // namespace convssm::io
