// The few protocol buffer messages that are needed are encoded by hand; their field numbers are those of TensorFlow's
// event.proto and summary.proto.
#include "convssm/io/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/io/crc32c.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr size_t flush_size = 1 << 16;

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// A protocol buffer message: Message().varint(1, 7).bytes(2, "text").
class Message {
 public:
  Message& varint(int field, uint64_t value) { return key(field, 0), base128(value), *this; }
  Message& float64(int field, double value) { return key(field, 1), put(bytes_, value), *this; }
  Message& bytes(int field, std::string_view value) {
    key(field, 2), base128(value.size());
    bytes_ += value;
    return *this;
  }
  Message& float32(int field, float value) { return key(field, 5), put(bytes_, value), *this; }
  const std::string& text() const { return bytes_; }

 private:
  void key(int field, int type) { base128(static_cast<uint64_t>(field << 3 | type)); }
  void base128(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

void append_record(std::string& out, std::string_view data) {
  std::string length;
  put(length, uint64_t{data.size()});
  out += length;
  put(out, masked_crc32c(length));
  out += data;
  put(out, masked_crc32c(data));
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// TensorBoard reads the files of a folder in the order of their names.
std::string new_file_name() {
  static std::atomic<int> count = 0;
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::strcpy(host, "localhost");
  return fmt::format("events.out.tfevents.{:010d}.{}.{}.{}", static_cast<int64_t>(wall_time()), host, getpid(),
                     count++);
}

std::string summary(const std::string& tag, const Message& content) {
  if (tag.empty() || !is_utf8(tag)) {
    fail(ErrorKind::usage, "[EventWriter] a tag must be UTF-8 text and not empty, got {}", in_quotes(tag));
  }
  const Message value = Message(content).bytes(1, tag);
  return Message().bytes(5, Message().bytes(1, value.text()).text()).text();
}

}  // namespace

EventWriter::EventWriter(const std::string& folder, int64_t purge_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorKind::io, "cannot create the folder '{}': {}", folder, error.message());
  path_ = (std::filesystem::path(folder) / new_file_name()).string();
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_io(fmt::format("cannot create '{}'", path_));
  constexpr int status_start = 1;
  add_event(0, Message().bytes(3, "brain.Event:2").text());
  if (purge_step >= 0) add_event(purge_step, Message().bytes(7, Message().varint(1, status_start).text()).text());
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error&) {
  }
  close(descriptor_);
}

void EventWriter::add_event(int64_t step, std::string_view content) {
  const Message head = Message().float64(1, wall_time()).varint(2, static_cast<uint64_t>(step));
  append_record(pending_, head.text() + std::string(content));
  if (pending_.size() >= flush_size) flush();
}

void EventWriter::scalar(const std::string& tag, int64_t step, double value) {
  add_event(step, summary(tag, Message().float32(2, static_cast<float>(value))));
}

void EventWriter::image(const std::string& tag, int64_t step, const Image& image) {
  const std::string png = encode_png(image);  // checks the sizes
  Message content;
  content.varint(1, static_cast<uint64_t>(image.height)).varint(2, static_cast<uint64_t>(image.width));
  content.varint(3, static_cast<uint64_t>(image.channels)).bytes(4, png);
  add_event(step, summary(tag, Message().bytes(4, content.text())));
}

void EventWriter::flush() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int code = errno;
      // A part of a record would make all later ones unreadable.
      if (ftruncate(descriptor_, size_) != 0) size_ += static_cast<int64_t>(done), pending_.erase(0, done);
      errno = code;
      fail_io(fmt::format("cannot write '{}'", path_));
    }
    done += static_cast<size_t>(written);
  }
  size_ += static_cast<int64_t>(done);
  pending_.clear();
}

}  // namespace convssm::io
