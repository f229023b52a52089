// Members of a ZIP file as streams. Output never exceeds the size that the directory declares, and input never leaves
// the member; the checksum is taken on the way and compared at the end.
#include <zlib.h>

#include <algorithm>
#include <array>

#include "convssm/io/text.h"
#include "convssm/io/zip.h"
#include "convssm/io/zip_directory.h"

namespace convssm::io {
namespace {

class MemberReader : public Reader {
 protected:
  MemberReader(std::shared_ptr<const Source> source, const ZipMember& member)
      : Reader(fmt::format("{}({})", source->name(), in_quotes(member.name)), member.size),
        source_(std::move(source)),
        crc_expected_(member.crc),
        input_(member.data_offset),
        input_left_(member.compressed_size) {}

  // The next stored bytes.
  void read_input(std::span<std::byte> out) {
    source_->read(input_, out);
    input_ += out.size();
    input_left_ -= out.size();
  }

  void add_to_crc(std::span<const std::byte> bytes) {
    crc_ = static_cast<uint32_t>(crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }

  uint64_t input_left() const { return input_left_; }

  void check_end() override {
    if (crc_ == crc_expected_) return;
    fail(size(), "the checksum is {:08x}, expected {:08x}: the file is damaged", crc_, crc_expected_);
  }

 private:
  std::shared_ptr<const Source> source_;
  uint32_t crc_expected_;
  uint32_t crc_ = 0;
  uint64_t input_;
  uint64_t input_left_;
};

class StoredReader : public MemberReader {
 public:
  StoredReader(std::shared_ptr<const Source> source, const ZipMember& member)
      : MemberReader(std::move(source), member) {}

 private:
  void fetch(std::span<std::byte> out) override {
    read_input(out);
    add_to_crc(out);
  }
};

class DeflatedReader : public MemberReader {
 public:
  DeflatedReader(std::shared_ptr<const Source> source, const ZipMember& member)
      : MemberReader(std::move(source), member) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) convssm::fail(ErrorKind::io, "zlib cannot be started");
  }
  DeflatedReader(const DeflatedReader&) = delete;
  DeflatedReader& operator=(const DeflatedReader&) = delete;
  ~DeflatedReader() override { inflateEnd(&stream_); }

 private:
  void fetch(std::span<std::byte> out) override {
    for (auto rest = out; !rest.empty();) {
      const size_t got = inflate_some(rest);
      if (got == 0) fail(position(), "the compressed data ends before the declared {} bytes", size());
      rest = rest.subspan(got);
    }
    add_to_crc(out);
  }

  // One byte more than declared must not come out, and no input may be left.
  void check_end() override {
    std::byte extra;
    if (inflate_some({&extra, 1}) != 0) fail(size(), "the compressed data holds more than {} bytes", size());
    if (stream_.avail_in != 0 || input_left() != 0) fail(size(), "unused bytes after the compressed data");
    MemberReader::check_end();
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
    if (stream_.avail_in != 0 || input_left() == 0) return;
    const auto size = std::min<uint64_t>(buffer_.size(), input_left());
    read_input(std::span(buffer_).first(size));
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(size);
  }

  z_stream stream_{};
  bool ended_ = false;
  std::array<std::byte, 1 << 16> buffer_;
};

}  // namespace

ZipFile::ZipFile(std::shared_ptr<const Source> source)
    : source_(std::move(source)), members_(zip::read_directory(*source_)) {}

std::unique_ptr<Reader> ZipFile::open(const ZipMember& member) const {
  if (member.method == ZipMethod::stored) return std::make_unique<StoredReader>(source_, member);
  return std::make_unique<DeflatedReader>(source_, member);
}

}  // namespace convssm::io
