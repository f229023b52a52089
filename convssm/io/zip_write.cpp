// ZIP files, written from the first byte to the last: the checksum of a member is taken before its header is written,
// and the size of a deflated one follows it in a data descriptor. Only a member that comes in chunks is gone back to,
// for its checksum: a descriptor there would be read by few programs, since stored data does not say where it ends.
#include <zlib.h>

#include <algorithm>
#include <array>

#include "convssm/base/error.h"
#include "convssm/io/text.h"
#include "convssm/io/zip.h"
#include "convssm/io/zip_format.h"

namespace convssm::io {
namespace {

using namespace zip;

constexpr uint16_t version_deflate = 20;
constexpr uint16_t version_zip64 = 45;
constexpr uint16_t made_by_unix = 3 << 8;
constexpr uint32_t first_of_january_1980 = 0x00210000;  // equal arrays give equal files
constexpr uint32_t regular_file_mode = 0100644u << 16;

// Little-endian records: Record().u32(local_signature).u16(20)...
class Record {
 public:
  Record& u16(uint64_t value) { return put(value, 2); }
  Record& u32(uint64_t value) { return put(value, 4); }
  Record& u64(uint64_t value) { return put(value, 8); }
  Record& text(const std::string& value) { return bytes_ += value, *this; }
  // A 32-bit field whose value is in the ZIP64 record if `wide`.
  Record& u32_or_zip64(uint64_t value, bool wide) { return u32(wide ? in_zip64 : value); }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  std::string bytes_;
};

// Whether the sizes of a member need 64 bits. Deflate may make data a little larger, and its result is not known yet
// when the header is written: the margin covers it.
bool needs_zip64(const ZipMember& member) {
  constexpr uint64_t limit = in_zip64;
  return member.size >= (member.method == ZipMethod::stored ? limit : limit - limit / 1000);
}

std::string local_header(const ZipMember& member) {
  const bool wide = needs_zip64(member);
  const bool later = member.flags & flag_descriptor;
  const uint64_t size = later ? 0 : member.size;
  Record record;
  record.u32(local_signature).u16(wide ? version_zip64 : version_deflate).u16(member.flags);
  record.u16(static_cast<uint16_t>(member.method)).u32(first_of_january_1980).u32(later ? 0 : member.crc);
  record.u32_or_zip64(size, wide).u32_or_zip64(size, wide).u16(member.name.size()).u16(wide ? 20 : 0);
  record.text(member.name);
  if (wide) record.u16(zip64_extra).u16(16).u64(size).u64(size);
  return record.bytes();
}

std::string data_descriptor(const ZipMember& member) {
  Record record;
  record.u32(descriptor_signature).u32(member.crc);
  if (needs_zip64(member))
    record.u64(member.compressed_size).u64(member.size);
  else
    record.u32(member.compressed_size).u32(member.size);
  return record.bytes();
}

std::string central_header(const ZipMember& member) {
  const bool wide = needs_zip64(member);
  const bool far = member.header_offset >= in_zip64;
  Record extra;
  if (wide) extra.u64(member.size).u64(member.compressed_size);
  if (far) extra.u64(member.header_offset);
  const size_t extra_size = extra.bytes().size();
  const uint16_t version = wide || far ? version_zip64 : version_deflate;
  Record record;
  record.u32(central_signature).u16(made_by_unix | version).u16(version).u16(member.flags);
  record.u16(static_cast<uint16_t>(member.method)).u32(first_of_january_1980).u32(member.crc);
  record.u32_or_zip64(member.compressed_size, wide).u32_or_zip64(member.size, wide);
  record.u16(member.name.size()).u16(extra_size > 0 ? extra_size + 4 : 0).u16(0);  // no comment
  record.u16(0).u16(0).u32(regular_file_mode).u32_or_zip64(member.header_offset, far).text(member.name);
  if (extra_size > 0) record.u16(zip64_extra).u16(extra_size).text(extra.bytes());
  return record.bytes();
}

std::string end_records(uint64_t offset, uint64_t size, uint64_t count) {
  const bool wide = offset >= in_zip64 || size >= in_zip64 || count >= in_zip64_short;
  Record record;
  if (wide) {
    record.u32(end64_signature).u64(end64_size - 12).u16(made_by_unix | version_zip64).u16(version_zip64).u32(0).u32(0);
    record.u64(count).u64(count).u64(size).u64(offset);
    record.u32(locator64_signature).u32(0).u64(offset + size).u32(1);
  }
  const uint64_t short_count = wide ? in_zip64_short : count;
  record.u32(end_signature).u16(0).u16(0).u16(short_count).u16(short_count);
  record.u32_or_zip64(size, wide).u32_or_zip64(offset, wide).u16(0);
  return record.bytes();
}

uint32_t checksum(uint32_t start, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void check_name(const std::string& name) {
  if (!name.empty() && name.size() <= 0xffff && is_utf8(name)) return;
  fail(ErrorKind::usage, "[ZipWriter] a member's name must be UTF-8 of 1 to 65535 bytes, got {}", in_quotes(name));
}

// A deflate stream that is freed on every way out.
struct Deflater {
  Deflater() {
    if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      fail(ErrorKind::io, "zlib cannot be started");
    }
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream); }
  z_stream stream{};
};

}  // namespace

void ZipWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes.data(), bytes.size());
  position_ += bytes.size();
}

void ZipWriter::write_deflated(std::span<const std::byte> head, std::span<const std::byte> body) {
  constexpr size_t max_input = 1 << 30;  // zlib counts in 32 bits
  Deflater deflater;
  z_stream& stream = deflater.stream;
  std::vector<std::byte> out(1 << 16);
  const auto run = [&](std::span<const std::byte> input, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
    stream.avail_in = static_cast<uInt>(input.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      deflate(&stream, flush);
      write(std::span(out).first(out.size() - stream.avail_out));
    } while (stream.avail_out == 0);
  };
  for (auto rest : {head, body}) {
    for (; !rest.empty(); rest = rest.subspan(std::min(rest.size(), max_input))) {
      run(rest.first(std::min(rest.size(), max_input)), Z_NO_FLUSH);
    }
  }
  run({}, Z_FINISH);
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> body,
                    bool compress) {
  require_closed("add()");
  check_name(name);
  ZipMember member;
  member.name = name;
  member.method = compress ? ZipMethod::deflated : ZipMethod::stored;
  member.flags = flag_utf8 | (compress ? flag_descriptor : 0);
  member.size = head.size() + body.size();
  member.crc = checksum(checksum(0, head), body);
  member.header_offset = position_;
  write(local_header(member));
  member.data_offset = position_;
  if (compress)
    write_deflated(head, body);
  else
    write(head), write(body);
  member.compressed_size = position_ - member.data_offset;
  if (compress) write(data_descriptor(member));
  members_.push_back(std::move(member));
}

void ZipWriter::require_closed(std::string_view what) const {
  if (open_) fail(ErrorKind::usage, "[ZipWriter] {} while member {} is open", what, in_quotes(members_.back().name));
}

void ZipWriter::begin(const std::string& name, uint64_t size) {
  require_closed("begin()");
  check_name(name);
  ZipMember member;
  member.name = name;
  member.flags = flag_utf8;
  member.size = member.compressed_size = size;
  member.header_offset = position_;
  write(local_header(member));
  member.data_offset = position_;
  members_.push_back(std::move(member));
  open_ = true;
}

void ZipWriter::append(std::span<const std::byte> bytes) {
  if (!open_) fail(ErrorKind::usage, "[ZipWriter] append() without begin()");
  ZipMember& member = members_.back();
  if (bytes.size() > member.data_offset + member.size - position_) {
    fail(ErrorKind::usage, "[ZipWriter] member {} was to have {} bytes, more are coming", in_quotes(member.name),
         member.size);
  }
  write(bytes);
  member.crc = checksum(member.crc, bytes);
}

void ZipWriter::end() {
  if (!open_) fail(ErrorKind::usage, "[ZipWriter] end() without begin()");
  const ZipMember& member = members_.back();
  const uint64_t found = position_ - member.data_offset;
  if (found != member.size) {
    fail(ErrorKind::usage, "[ZipWriter] member {} was to have {} bytes, got {}", in_quotes(member.name), member.size,
         found);
  }
  constexpr uint64_t crc_offset = 14;
  const std::string crc = Record().u32(member.crc).bytes();
  file_.seek(member.header_offset + crc_offset);
  file_.write(crc.data(), crc.size());
  file_.seek(position_);
  open_ = false;
}

void ZipWriter::commit() {
  require_closed("commit()");
  const uint64_t offset = position_;
  for (const ZipMember& member : members_) write(central_header(member));
  write(end_records(offset, position_ - offset, members_.size()));
  file_.commit();
}

}  // namespace convssm::io
