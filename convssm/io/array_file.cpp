// A chunk is read straight from its offset where the bytes lie there as they are: a .npy file, or a stored member of a
// .npz file, in C order. Compressed or Fortran-ordered arrays have no such offset; they are read whole and then cut. libhdf5
// finds the chunks of HDF5 files itself.
#include "convssm/io/array_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "convssm/base/error.h"
#include "convssm/io/array_box.h"
#include "convssm/io/hdf5.h"
#include "convssm/io/layout.h"
#include "convssm/io/npy.h"
#include "convssm/io/npy_header.h"
#include "convssm/io/npz.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

bool has_magic(const Source& source, uint64_t offset, std::string_view magic) {
  std::array<std::byte, 8> found;
  if (source.size() < offset + magic.size()) return false;
  source.read(offset, std::span(found).first(magic.size()));
  return std::ranges::equal(std::as_bytes(std::span(magic)), std::span(found).first(magic.size()));
}

bool is_zip(const Source& source) { return has_magic(source, 0, "PK"); }

bool is_hdf5(const Source& source) {
  constexpr std::string_view magic = "\x89HDF\r\n\x1a\n";
  return has_magic(source, 0, magic) || has_magic(source, 512, magic);  // the second after a block of the user
}

const ZipMember& find_member(const ZipFile& zip, const std::string& name, const std::vector<std::string>& names) {
  for (const ZipMember& member : zip.members()) {
    if (member.name == name + ".npy") return member;
  }
  fail_missing(zip.name(), name, names);
}

}  // namespace

std::vector<std::string> array_names(const std::string& path) {
  const auto source = open_source(path);
  if (is_hdf5(*source)) return hdf5_names(path);
  return is_zip(*source) ? NpzFile(source).names() : std::vector<std::string>{""};
}

ArrayFile::ArrayFile(const std::string& path, const std::string& name)
    : path_(path), name_(name), source_(open_source(path)) {
  if (is_hdf5(*source_)) {
    hdf5_ = std::make_shared<Hdf5Array>(path, name);
    info_ = hdf5_->info();
    return;
  }
  bool stored = true;
  if (is_zip(*source_)) {
    const ZipFile zip(source_);
    const ZipMember& member = find_member(zip, name, NpzFile(source_).names());
    data_offset_ = member.data_offset;
    stored = member.method == ZipMethod::stored;
  } else if (!name.empty()) {
    fail_missing(path, name, {});
  }
  info_ = read_npy_info(*open());
  const std::unique_ptr<Reader> reader = open();
  const NpyHeader header = read_npy_header(*reader);
  data_offset_ += reader->position();
  big_endian_ = header.big_endian;
  whole_only_ = !stored || header.fortran_order;
}

std::unique_ptr<Reader> ArrayFile::open() const {
  if (hdf5_) fail(ErrorKind::usage, "[ArrayFile] '{}' is an HDF5 file, which is not read from end to end", path_);
  if (!is_zip(*source_)) return make_reader(source_);
  const ZipFile zip(source_);
  return zip.open(find_member(zip, name_, {}));
}

Array ArrayFile::read() const {
  if (!hdf5_) return read_npy(*open());
  Array array = array_of_file(path_, info_.dtype, info_.shape);
  std::ranges::copy(hdf5_->read(0, array.element_count()).bytes(), array.bytes().begin());
  return array;
}

void ArrayFile::verify() const {
  if (hdf5_ || whole_only_ || !is_zip(*source_)) return;
  const std::unique_ptr<Reader> reader = open();
  std::vector<std::byte> block(1 << 20);
  while (reader->position() < reader->size()) {
    reader->read(std::span(block).first(std::min<uint64_t>(block.size(), reader->size() - reader->position())));
  }
  reader->finish();
}

Array ArrayFile::read(uint64_t first, uint64_t count) const {
  const auto bytes = checked_byte_count(info_.shape, dtype_size(info_.dtype));
  const uint64_t all = bytes.value_or(0) / dtype_size(info_.dtype);
  if (first > all || count > all - first) {
    fail(ErrorKind::usage, "[ArrayFile] '{}' has {} elements, asked for {} from {} on", path_, all, count, first);
  }
  if (hdf5_) return hdf5_->read(first, count);
  if (whole_only_) return chunk_of(read(), first, count, path_);
  Array array = array_of_file(path_, info_.dtype, {static_cast<int64_t>(count)});
  source_->read(data_offset_ + first * dtype_size(info_.dtype), array.bytes());
  normalize_bools(array);
  if (big_endian_) swap_byte_order(array);
  return array;
}

Array ArrayFile::read_box(std::span<const int64_t> first, std::span<const int64_t> count) const {
  if (hdf5_) return hdf5_->read_box(first, count);
  if (whole_only_) return box_of(read(), first, count, path_);
  Array box = io::read_box(path_, info_, first, count, [this](uint64_t element, std::span<std::byte> out) {
    source_->read(data_offset_ + element * dtype_size(info_.dtype), out);
  });
  normalize_bools(box);
  if (big_endian_) swap_byte_order(box);
  return box;
}

uint64_t ArrayFile::box_cost(std::span<const int64_t> count) const {
  const size_t item = dtype_size(info_.dtype);
  if (hdf5_) return checked_byte_count(count, item).value_or(UINT64_MAX);
  if (whole_only_) return checked_byte_count(info_.shape, item).value_or(UINT64_MAX);
  return plan_box(info_.shape, count, item).cost;
}

}  // namespace convssm::io
