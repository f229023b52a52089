// Inflates as it goes and never seeks, so a compressed array costs the memory of one chunk. The checksum covers the
// whole member and can therefore only be compared after the last element.
#include "convssm/io/array_stream.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/io/array_file.h"
#include "convssm/io/layout.h"
#include "convssm/io/npy_header.h"

namespace convssm::io {

ArrayStream::ArrayStream(const std::string& path, const std::string& name) : path_(path) {
  const ArrayFile file(path, name);
  info_ = file.info();
  size_ = checked_byte_count(info_.shape, dtype_size(info_.dtype)).value_or(0) / dtype_size(info_.dtype);
  reader_ = file.open();
  const NpyHeader header = read_npy_header(*reader_);
  big_endian_ = header.big_endian;
  if (!header.fortran_order) return;
  whole_ = file.read();
  reader_.reset();
}

Array ArrayStream::next(uint64_t count) {
  if (count > size_ - position_) {
    fail(ErrorKind::usage, "[ArrayStream] '{}' has {} elements left, asked for {}", path_, size_ - position_, count);
  }
  Array chunk = array_of_file(path_, info_.dtype, {static_cast<int64_t>(count)});
  const size_t size = dtype_size(info_.dtype);
  if (!reader_) {
    std::ranges::copy(whole_.bytes().subspan(position_ * size, count * size), chunk.bytes().begin());
  } else {
    reader_->read(chunk.bytes());
    normalize_bools(chunk);
    if (big_endian_) swap_byte_order(chunk);
  }
  position_ += count;
  if (reader_ && position_ == size_) reader_->finish();
  return chunk;
}

}  // namespace convssm::io
