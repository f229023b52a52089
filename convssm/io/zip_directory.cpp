// Sizes and offsets stand twice in a ZIP file, in the directory and before each member; programs differ in which one
// they believe, so both must agree here. Members are visited in the order of the file: overlaps are seen at once, and a
// "zip bomb" whose members share bytes is refused.
#include "convssm/io/zip_directory.h"

#include <algorithm>
#include <unordered_set>

#include "convssm/io/text.h"
#include "convssm/io/zip_end.h"
#include "convssm/io/zip_format.h"

namespace convssm::io::zip {
namespace {

// Replaces each value that is 0xffffffff by the next one of the ZIP64 field.
void apply_zip64(const Source& source, uint64_t at, std::span<const std::byte> extra,
                 std::span<uint64_t* const> values) {
  while (extra.size() >= 4) {
    const auto id = load<uint16_t>(&extra[0]);
    const auto size = load<uint16_t>(&extra[2]);
    if (size > extra.size() - 4) source.fail(at, "an extra field of {} bytes leaves its zip header", size);
    auto content = extra.subspan(4, size);
    extra = extra.subspan(4 + size);
    if (id != zip64_extra) continue;
    for (uint64_t* value : values) {
      if (*value != in_zip64) continue;
      if (content.size() < 8) source.fail(at, "the ZIP64 field has no value where one is needed");
      *value = load<uint64_t>(content.data());
      content = content.subspan(8);
    }
    return;
  }
}

void check_method(const Source& source, uint64_t at, const ZipMember& member, uint16_t method) {
  const auto name = in_quotes(member.name);
  if (member.flags & flag_encrypted) source.fail(at, "member {} is encrypted: save it without a password", name);
  if (member.flags & flag_patch) source.fail(at, "member {} is patched data, which is not supported", name);
  if (method != 0 && method != 8) {
    source.fail(at, "member {} has compression method {}; supported are 0 (np.savez) and 8 (np.savez_compressed)", name,
                method);
  }
}

// Deflate makes at most 258 bytes of 2 bits: a larger size is false, and nothing is allocated for it.
void check_sizes(const Source& source, uint64_t at, const ZipMember& member) {
  constexpr uint64_t max_ratio = 1032;
  const uint64_t least = member.size / max_ratio + (member.size % max_ratio != 0);
  const bool stored = member.method == ZipMethod::stored;
  const bool possible = stored ? member.compressed_size == member.size : member.compressed_size >= least;
  if (possible) return;
  source.fail(at, "member {} cannot have {} bytes when {} are stored", in_quotes(member.name), member.size,
              member.compressed_size);
}

// One entry of the directory at `position` of `bytes`, which begin at `origin` of the file; moves the position on.
ZipMember read_entry(const Source& source, std::span<const std::byte> bytes, uint64_t origin, size_t& position) {
  const uint64_t at = origin + position;
  const auto record = bytes.subspan(position);
  if (record.size() < central_size) source.fail(at, "the zip directory is cut short");
  if (load<uint32_t>(&record[0]) != central_signature) source.fail(at, "expected an entry of the zip directory");
  const size_t name_size = load<uint16_t>(&record[28]);
  const size_t extra_size = load<uint16_t>(&record[30]);
  const size_t total = central_size + name_size + extra_size + load<uint16_t>(&record[32]);
  if (total > record.size()) source.fail(at, "an entry of {} bytes leaves the zip directory", total);
  if (load<uint16_t>(&record[34]) != 0) source.fail(at + 34, "a zip file of several disks is not supported");

  ZipMember member;
  member.name.assign(reinterpret_cast<const char*>(record.data()) + central_size, name_size);
  member.flags = load<uint16_t>(&record[8]);
  member.crc = load<uint32_t>(&record[16]);
  member.compressed_size = load<uint32_t>(&record[20]);
  member.size = load<uint32_t>(&record[24]);
  member.header_offset = load<uint32_t>(&record[42]);
  uint64_t* const values[] = {&member.size, &member.compressed_size, &member.header_offset};
  apply_zip64(source, at, record.subspan(central_size + name_size, extra_size), values);
  check_method(source, at, member, load<uint16_t>(&record[10]));
  member.method = static_cast<ZipMethod>(load<uint16_t>(&record[10]));
  check_sizes(source, at, member);
  position += total;
  return member;
}

// The header before a member's data must say what the directory says; where a data descriptor follows the data, its
// checksum and sizes may be 0.
void check_local(const Source& source, const ZipMember& member, std::span<const std::byte> header,
                 std::span<const std::byte> extra) {
  const uint64_t at = member.header_offset;
  const auto differs = [&](std::string_view what) {
    source.fail(at, "the header of member {} and the zip directory disagree on the {}", in_quotes(member.name), what);
  };
  const auto flags = load<uint16_t>(&header[6]);
  uint64_t compressed_size = load<uint32_t>(&header[18]);
  uint64_t size = load<uint32_t>(&header[22]);
  uint64_t* const values[] = {&size, &compressed_size};
  apply_zip64(source, at, extra, values);
  const auto agrees = [&](uint64_t local, uint64_t central) {
    return local == central || (local == 0 && (flags & flag_descriptor));
  };
  if (flags != member.flags) differs("flags");
  if (load<uint16_t>(&header[8]) != static_cast<uint16_t>(member.method)) differs("method");
  if (!agrees(load<uint32_t>(&header[14]), member.crc)) differs("checksum");
  if (!agrees(compressed_size, member.compressed_size)) differs("compressed size");
  if (!agrees(size, member.size)) differs("size");
}

// Finds where the data of a member begins; everything up to `limit`, the directory, is members.
void locate_data(const Source& source, ZipMember& member, uint64_t limit) {
  const uint64_t at = member.header_offset;
  if (at > limit || limit - at < local_size)
    source.fail(at, "member {} is outside of the file", in_quotes(member.name));
  const auto header = read_bytes(source, at, local_size);
  if (load<uint32_t>(&header[0]) != local_signature) {
    source.fail(at, "no header of member {} where the zip directory says", in_quotes(member.name));
  }
  const size_t name_size = load<uint16_t>(&header[26]);
  const size_t extra_size = load<uint16_t>(&header[28]);
  member.data_offset = at + local_size + name_size + extra_size;
  if (member.data_offset > limit || limit - member.data_offset < member.compressed_size) {
    source.fail(at, "the {} bytes of member {} leave the file", member.compressed_size, in_quotes(member.name));
  }
  const auto rest = read_bytes(source, at + local_size, name_size + extra_size);
  const std::string_view name(reinterpret_cast<const char*>(rest.data()), name_size);
  if (name != member.name) source.fail(at, "member {} is {} in its header", in_quotes(member.name), in_quotes(name));
  check_local(source, member, header, std::span(rest).subspan(name_size));
}

void check_names(const Source& source, const Directory& directory, std::span<const ZipMember> members) {
  std::unordered_set<std::string_view> seen;
  for (const ZipMember& member : members) {
    if (!seen.insert(member.name).second) {
      source.fail(directory.offset, "two members are named {}", in_quotes(member.name));
    }
    if ((member.flags & flag_utf8) && !is_utf8(member.name)) {
      source.fail(directory.offset, "the name of member {} is not UTF-8", in_quotes(member.name));
    }
  }
}

// In the order of the file, and no header is read inside another member: the work is bounded by the size of the file.
void locate_all(const Source& source, std::vector<ZipMember>& members, uint64_t limit) {
  std::vector<ZipMember*> order;
  for (ZipMember& member : members) order.push_back(&member);
  std::ranges::sort(order, {}, &ZipMember::header_offset);
  uint64_t covered = 0;
  for (ZipMember* member : order) {
    if (member->header_offset < covered) {
      source.fail(member->header_offset, "member {} overlaps another one", in_quotes(member->name));
    }
    locate_data(source, *member, limit);
    covered = member->data_offset + member->compressed_size;
  }
}

}  // namespace

std::vector<ZipMember> read_directory(const Source& source) {
  const Directory directory = find_directory(source);
  const auto bytes = read_bytes(source, directory.offset, directory.size);
  std::vector<ZipMember> members;
  size_t position = 0;
  while (members.size() < directory.count) members.push_back(read_entry(source, bytes, directory.offset, position));
  if (position != bytes.size())
    source.fail(directory.offset + position, "the zip directory has unknown data at its end");
  check_names(source, directory, members);
  locate_all(source, members, directory.offset);
  return members;
}

}  // namespace convssm::io::zip
