// The header stands before the data and holds the shape, so the shape is announced first and checked at the end. A .npy
// stream may end early: the header is written again in the same number of bytes, padded with blanks.
#include "convssm/io/npy_stream.h"

#include "convssm/base/error.h"
#include "convssm/io/npy.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr size_t npy_prefix = 10;  // magic, version and the length of the rest of the header in two bytes

uint64_t byte_count(std::string_view who, const ArrayInfo& info) {
  const auto count = checked_byte_count(info.shape, dtype_size(info.dtype));
  if (count) return *count;
  fail(ErrorKind::usage, "[{}] shape {} of {} has a negative length or more than 2^63 bytes", who,
       shape_text(info.shape), dtype_name(info.dtype));
}

void take(std::string_view who, const ArrayInfo& info, uint64_t& left, uint64_t size) {
  if (size > left) {
    fail(ErrorKind::usage, "[{}] shape {} of {} has {} bytes left, got {}", who, shape_text(info.shape),
         dtype_name(info.dtype), left, size);
  }
  left -= size;
}

void require_complete(std::string_view who, const ArrayInfo& info, uint64_t left) {
  if (left == 0) return;
  fail(ErrorKind::usage, "[{}] shape {} of {} is not complete: {} bytes are missing", who, shape_text(info.shape),
       dtype_name(info.dtype), left);
}

}  // namespace

NpyStream::NpyStream(const std::string& path, DType dtype, std::vector<int64_t> shape)
    : info_{dtype, std::move(shape)}, left_(byte_count("NpyStream", info_)), file_(path) {
  const std::string header = npy_header(info_.dtype, info_.shape);
  header_size_ = header.size();
  file_.write(header.data(), header.size());
}

void NpyStream::write(std::span<const std::byte> bytes) {
  if (closed_) fail(ErrorKind::usage, "[NpyStream] write() after close()");
  take("NpyStream", info_, left_, bytes.size());
  file_.write(bytes.data(), bytes.size());
}

void NpyStream::close() {
  if (closed_) fail(ErrorKind::usage, "[NpyStream] close() after close()");
  require_complete("NpyStream", info_, left_);
  file_.commit();
  closed_ = true;
}

void NpyStream::close_early(int64_t rows) {
  const uint64_t written = byte_count("NpyStream", info_) - left_;
  ArrayInfo shorter = info_;
  if (!shorter.shape.empty()) shorter.shape[0] = rows;
  if (byte_count("NpyStream", shorter) != written) {
    fail(ErrorKind::usage, "[NpyStream] {} bytes came, which is not a shape of {}", written, shape_text(shorter.shape));
  }
  std::string header = npy_header(shorter.dtype, shorter.shape);
  header.insert(header.size() - 1, header_size_ - header.size(), ' ');  // before the end of its only line
  const size_t length = header_size_ - npy_prefix;
  header[npy_prefix - 2] = static_cast<char>(length & 0xff);
  header[npy_prefix - 1] = static_cast<char>(length >> 8);
  file_.seek(0);
  file_.write(header.data(), header.size());
  info_ = shorter;
  left_ = 0;
  close();
}

void NpzStream::begin(const std::string& name, DType dtype, std::vector<int64_t> shape) {
  if (closed_ || open_) fail(ErrorKind::usage, "[NpzStream] begin() {}", closed_ ? "after close()" : "before end()");
  if (names_.contains(name)) fail(ErrorKind::usage, "[NpzStream] two arrays are named {}", in_quotes(name));
  ArrayInfo info{dtype, std::move(shape)};
  const uint64_t size = byte_count("NpzStream", info);
  const std::string header = npy_header(info.dtype, info.shape);
  zip_.begin(name + ".npy", header.size() + size);
  zip_.append(std::as_bytes(std::span(header)));
  names_.insert(name);
  info_ = std::move(info);
  left_ = size;
  open_ = true;
}

void NpzStream::write(std::span<const std::byte> bytes) {
  if (!open_) fail(ErrorKind::usage, "[NpzStream] write() without begin()");
  take("NpzStream", info_, left_, bytes.size());
  zip_.append(bytes);
}

void NpzStream::end() {
  if (!open_) fail(ErrorKind::usage, "[NpzStream] end() without begin()");
  require_complete("NpzStream", info_, left_);
  zip_.end();
  open_ = false;
}

void NpzStream::close() {
  if (closed_ || open_) fail(ErrorKind::usage, "[NpzStream] close() {}", closed_ ? "after close()" : "before end()");
  zip_.commit();
  closed_ = true;
}

}  // namespace convssm::io
