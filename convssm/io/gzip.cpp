// zlib reads the gzip wrapper itself and compares checksum and size at its end. The size in the trailer is read first,
// because a Reader must know its size before anything is read; it is believed only if deflate can make that many bytes
// of the file (at most 1032 for one).
#include "convssm/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace convssm::io {
namespace {

constexpr uint64_t smallest_file = 18;  // header of 10 bytes, trailer of 8
constexpr uint64_t highest_ratio = 1032;

uint64_t declared_size(const Source& source) {
  if (source.size() < smallest_file) source.fail(source.size(), "a gzip file has at least {} bytes", smallest_file);
  std::array<std::byte, 4> bytes;
  source.read(source.size() - bytes.size(), bytes);
  const uint64_t size = load<uint32_t>(bytes.data());
  if (size <= highest_ratio * source.size()) return size;
  source.fail(source.size() - bytes.size(),
              "{} compressed bytes cannot hold the declared {} bytes: damaged or cut short", source.size(), size);
}

class GzipReader : public Reader {
 public:
  explicit GzipReader(std::shared_ptr<const Source> source)
      : Reader(source->name(), declared_size(*source)), source_(std::move(source)) {
    constexpr int gzip_format = 16;
    if (inflateInit2(&stream_, MAX_WBITS + gzip_format) != Z_OK) convssm::fail(ErrorKind::io, "zlib cannot be started");
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  ~GzipReader() override { inflateEnd(&stream_); }

 private:
  void fetch(std::span<std::byte> out) override {
    while (!out.empty()) {
      const size_t got = inflate_some(out);
      if (got == 0) fail(position(), "the compressed data ends before the declared {} bytes", size());
      out = out.subspan(got);
    }
  }

  // zlib compares checksum and size when it meets the end.
  void check_end() override {
    std::byte extra;
    if (inflate_some({&extra, 1}) != 0) fail(size(), "the compressed data holds more than {} bytes", size());
    if (stream_.avail_in != 0 || input_ != source_->size()) fail(size(), "unused bytes after the compressed data");
  }

  // Inflates at least one byte into `out`; 0 when the compressed data has ended.
  size_t inflate_some(std::span<std::byte> out) {
    const auto wanted = static_cast<uInt>(std::min<size_t>(out.size(), 1 << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = wanted;
    while (!ended_ && stream_.avail_out == wanted) {
      refill();
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END)
        ended_ = true;
      else if (result == Z_BUF_ERROR)
        fail(position(), "the compressed data is cut short");
      else if (result == Z_MEM_ERROR)
        convssm::fail(ErrorKind::io, "no memory left to decompress '{}'", name());
      else if (result != Z_OK)
        fail(position(), "the compressed data is damaged: {}", stream_.msg ? stream_.msg : "");
    }
    return wanted - stream_.avail_out;
  }

  void refill() {
    if (stream_.avail_in != 0 || input_ == source_->size()) return;
    const auto count = std::min<uint64_t>(buffer_.size(), source_->size() - input_);
    source_->read(input_, std::span(buffer_).first(count));
    input_ += count;
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(count);
  }

  std::shared_ptr<const Source> source_;
  uint64_t input_ = 0;
  z_stream stream_{};
  bool ended_ = false;
  std::array<std::byte, 1 << 16> buffer_;
};

}  // namespace

bool is_gzip(const Source& source) {
  std::array<std::byte, 2> magic;
  if (source.size() < magic.size()) return false;
  source.read(0, magic);
  return magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
}

std::unique_ptr<Reader> make_gzip_reader(std::shared_ptr<const Source> source) {
  return std::make_unique<GzipReader>(std::move(source));
}

}  // namespace convssm::io
