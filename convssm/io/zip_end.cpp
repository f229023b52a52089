// The end record is searched from the last byte backwards, behind a comment of up to 64 KiB; the length of that comment
// must fit, since its text may hold the signature too. Where a ZIP64 record exists its wide numbers count.
#include "convssm/io/zip_end.h"

#include <algorithm>

#include "convssm/io/zip_format.h"

namespace convssm::io::zip {
namespace {

constexpr uint64_t max_directory = 256 << 20;  // above a million members
constexpr uint64_t max_comment = 0xffff;

// The end record is the last thing in the file but for a comment, whose length must fit.
uint64_t find_end(const Source& source) {
  if (source.size() < end_size) {
    source.fail(0, "a zip file has at least {} bytes, this one has {}", end_size, source.size());
  }
  const uint64_t begin = source.size() - std::min(source.size(), end_size + max_comment);
  const auto tail = read_bytes(source, begin, source.size() - begin);
  for (uint64_t i = tail.size() - end_size + 1; i-- > 0;) {
    if (load<uint32_t>(&tail[i]) != end_signature) continue;
    if (i + end_size + load<uint16_t>(&tail[i + 20]) == tail.size()) return begin + i;
  }
  source.fail(source.size() - end_size, "no end record of a zip file: cut short, or not a zip (.npz) file");
}

// A value of the old record and its ZIP64 twin must agree unless the old one only points there.
uint64_t merge64(const Source& source, uint64_t end, uint64_t value, uint64_t marker, uint64_t wide) {
  if (value != marker && value != wide)
    source.fail(end, "the zip and ZIP64 end records disagree: {} and {}", value, wide);
  return wide;
}

void read_end64(const Source& source, uint64_t end, Directory& directory) {
  const auto locator = read_bytes(source, end - locator64_size, locator64_size);
  const auto offset = load<uint64_t>(&locator[8]);
  if (load<uint32_t>(&locator[4]) != 0 || load<uint32_t>(&locator[16]) > 1) {
    source.fail(end - locator64_size, "a zip file of several disks is not supported");
  }
  const uint64_t limit = end - locator64_size;
  if (offset > limit || limit - offset < end64_size) source.fail(limit, "the ZIP64 end record is outside of the file");
  const auto record = read_bytes(source, offset, end64_size);
  if (load<uint32_t>(&record[0]) != end64_signature) source.fail(offset, "no ZIP64 end record where it should be");
  if (load<uint64_t>(&record[4]) != limit - offset - 12) source.fail(offset + 4, "wrong size of the ZIP64 end record");
  if (load<uint32_t>(&record[16]) != 0 || load<uint32_t>(&record[20]) != 0) {
    source.fail(offset + 16, "a zip file of several disks is not supported");
  }
  if (load<uint64_t>(&record[24]) != load<uint64_t>(&record[32])) source.fail(offset + 24, "members on other disks");
  directory.count = merge64(source, end, directory.count, in_zip64_short, load<uint64_t>(&record[32]));
  directory.size = merge64(source, end, directory.size, in_zip64, load<uint64_t>(&record[40]));
  directory.offset = merge64(source, end, directory.offset, in_zip64, load<uint64_t>(&record[48]));
  directory.end = offset;
}

bool has_locator64(const Source& source, uint64_t end) {
  if (end < locator64_size) return false;
  return load<uint32_t>(read_bytes(source, end - locator64_size, 4).data()) == locator64_signature;
}

}  // namespace

std::vector<std::byte> read_bytes(const Source& source, uint64_t offset, uint64_t size) {
  std::vector<std::byte> bytes(size);
  source.read(offset, bytes);
  return bytes;
}

Directory find_directory(const Source& source) {
  const uint64_t end = find_end(source);
  const auto record = read_bytes(source, end, end_size);
  const auto count = load<uint16_t>(&record[10]);
  if (load<uint16_t>(&record[4]) != 0 || load<uint16_t>(&record[6]) != 0 || load<uint16_t>(&record[8]) != count) {
    source.fail(end + 4, "a zip file of several disks is not supported");
  }
  Directory directory{load<uint32_t>(&record[16]), load<uint32_t>(&record[12]), count, end};
  if (has_locator64(source, end)) read_end64(source, end, directory);
  if (directory.offset > directory.end || directory.size != directory.end - directory.offset) {
    source.fail(end, "the zip directory [{}, +{}) does not end at byte {}", directory.offset, directory.size,
                directory.end);
  }
  if (directory.size > max_directory) source.fail(end, "the zip directory has {} bytes, too many", directory.size);
  if (directory.count > directory.size / central_size) {
    source.fail(end, "{} members do not fit in a zip directory of {} bytes", directory.count, directory.size);
  }
  return directory;
}

}  // namespace convssm::io::zip
