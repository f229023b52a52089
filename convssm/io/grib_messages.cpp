// All numbers are big-endian. A message of edition 1 has one field: an indicator of 8 bytes, the product definition, the grid if a flag
// says so, a bitmap if another does, the values, and "7777". One of edition 2 has sections with numbers, of which those from 2, 3 or 4 on
// may come again, for the next field: a field has the last of each.
#include "convssm/io/grib_messages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "convssm/base/file_memory.h"

namespace convssm::io {
namespace {

using Piece = GribField::Piece;

constexpr std::string_view grib_begin = "GRIB", grib_end = "7777";
constexpr uint64_t most_between = 1 << 20;    // bytes between two messages
constexpr uint64_t most_described = 1 << 20;  // bytes of a section that is no bitmap and has no values
constexpr size_t most_fields = 1000;          // of one message
constexpr uint64_t most_values_head = 256;  // bytes of the section of values of edition 1 that tell how they are packed
constexpr uint8_t grid_flag = 0x80, bitmap_flag = 0x40;

uint64_t big_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

void set_big_endian(std::string& bytes, size_t at, size_t count, uint64_t number) {
  for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(number >> 8 * (count - 1 - i));
}

std::string bytes_at(const Source& source, const Piece& piece) {
  std::string bytes(piece.length, '\0');
  source.read(piece.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Bytes from `at` on, which are not looked at when fields are compared.
void blank(std::string& section, size_t at, size_t count) {
  for (size_t i = at; i < std::min(at + count, section.size()); ++i) section[i] = '\0';
}

// Of simple packing and those that follow it: how many values there are, the least of them and their scale.
std::string without_values(std::string packing) {
  constexpr std::array<uint64_t, 6> like_simple = {0, 2, 3, 40, 41, 42};
  if (packing.size() < 17) return packing;
  blank(packing, 5, 4);
  if (std::ranges::count(like_simple, big_endian(packing.substr(9, 2))) > 0) blank(packing, 11, 6);
  return packing;
}

class GribScanner {
 public:
  GribScanner(const Source& source, const std::function<void(GribField, const GribHeader&)>& take)
      : source_(source), take_(take) {}

  void scan() {
    for (uint64_t at = 0; find_message(at);) {
      const std::string head = bytes_at(source_, {at, 8});
      begin_ = at;
      const int edition = static_cast<unsigned char>(head[7]);
      if (edition != 1 && edition != 2) source_.fail(at, "GRIB of edition {}, not 1 or 2", edition);
      at = edition == 1 ? scan_first_edition(big_endian(head.substr(4, 3))) : scan_second_edition();
    }
    if (begin_ == no_message) source_.fail(0, "no GRIB message in it");
  }

 private:
  static constexpr uint64_t no_message = UINT64_MAX;

  // Moves to the next message; false if only padding is left.
  bool find_message(uint64_t& at) const {
    const uint64_t first = at;
    std::string block;
    uint64_t block_at = at;
    for (;; ++at) {
      if (at >= source_.size()) return false;
      if (at - first > most_between) source_.fail(first, "{} bytes that are no GRIB message", at - first);
      if (at + grib_begin.size() > block_at + block.size() && block_at + block.size() < source_.size()) {
        block_at = at;
        block = bytes_at(source_, {at, std::min<uint64_t>(4096, source_.size() - at)});
      }
      const std::string_view rest = std::string_view(block).substr(at - block_at);
      if (rest.starts_with(grib_begin)) {
        if (source_.size() - at < 8) source_.fail(at, "the message is cut off");
        return true;
      }
      const auto byte = static_cast<unsigned char>(rest[0]);
      if (byte >= 0x7f || (grib_begin.starts_with(rest)))
        source_.fail(at, "expected a GRIB message, found other bytes");
    }
  }

  void require_inside(uint64_t at, uint64_t length, uint64_t end, const char* what) const {
    if (at > end || length > end - at) source_.fail(begin_, "{} of the message at byte {} is cut off", what, at);
  }

  // A section whose first bytes are its length.
  Piece section(uint64_t at, uint64_t end, size_t length_bytes, uint64_t least, const char* what) const {
    require_inside(at, length_bytes, end, what);
    const uint64_t length = big_endian(bytes_at(source_, {at, length_bytes}));
    if (length < least) source_.fail(begin_, "{} of the message, at byte {}, has {} bytes", what, at, length);
    require_inside(at, length, end, what);
    return {at, length};
  }

  std::string described(const Piece& piece, const char* what) const {
    if (piece.length > most_described) source_.fail(begin_, "{} of the message has {} bytes", what, piece.length);
    return bytes_at(source_, piece);
  }

  // From a byte each of the month, the day, the hour and the minute.
  int64_t time_of(int64_t year, std::string_view clock, int64_t second) const {
    namespace chrono = std::chrono;
    const auto part = [&](size_t i) { return static_cast<unsigned>(big_endian(clock.substr(i, 1))); };
    const chrono::year_month_day date{chrono::year(static_cast<int>(year)), chrono::month(part(0)),
                                      chrono::day(part(1))};
    if (!date.ok() || part(2) > 24 || part(3) > 59 || second > 60) {
      source_.fail(begin_, "the message is of no time: {}-{}-{} {}:{}:{}", year, part(0), part(1), part(2), part(3),
                   second);
    }
    const int64_t days = chrono::sys_days(date).time_since_epoch().count();
    return ((days * 24 + part(2)) * 60 + part(3)) * 60 + second;
  }

  void require_end(uint64_t end) const {
    if (end - begin_ < 12) source_.fail(begin_, "the message has {} bytes", end - begin_);
    if (bytes_at(source_, {end - 4, 4}) != grib_end) {
      source_.fail(begin_, "the message does not end with 7777 at byte {}: damaged or cut off", end - 4);
    }
  }

  uint64_t scan_first_edition(uint64_t length) {
    const uint64_t all = source_.size();
    const Piece product = section(begin_ + 8, all, 3, 28, "the product definition");
    std::string definition = described(product, "the product definition");
    const auto flags = static_cast<uint8_t>(definition[7]);
    uint64_t at = product.offset + product.length;
    GribHeader header;
    if (flags & grid_flag) {
      const Piece grid = section(at, all, 3, 6, "the grid description");
      header.grid = described(grid, "the grid description");
      at += grid.length;
    } else {
      header.grid = definition.substr(6, 1);  // a number of a grid that everybody knows
    }
    if (flags & bitmap_flag) at += section(at, all, 3, 6, "the bitmap").length;
    require_inside(at, 11, all, "the values");
    const uint64_t coded = big_endian(bytes_at(source_, {at, 3}));
    // Messages of 8 MiB and more count in units of 120 bytes, and the values say how much that is too much.
    if ((length & 0x800000) != 0 && coded < 120) length = (length & 0x7fffff) * 120 - coded + 4;
    const uint64_t end = begin_ + length;
    require_inside(begin_, length, all, "the end");
    require_end(end);
    if (at + 11 > end - 4) source_.fail(begin_, "the sections of the message are longer than it is");

    definition[7] = static_cast<char>(flags & ~bitmap_flag);
    const auto century = static_cast<int64_t>(big_endian(definition.substr(24, 1)));
    header.time = time_of((century - 1) * 100 + static_cast<int64_t>(big_endian(definition.substr(12, 1))),
                          std::string_view(definition).substr(13, 4), 0);
    std::string values = bytes_at(source_, {at, std::min(most_values_head, end - 4 - at)});
    set_big_endian(values, 0, 3, values.size());
    header.message = std::string("GRIB\0\0\0\1", 8) + definition + (flags & grid_flag ? header.grid : "") + values;
    header.message += grib_end;
    set_big_endian(header.message, 4, 3, header.message.size());
    blank(definition, 12, 5), blank(definition, 24, 1);
    const bool simple = (static_cast<unsigned char>(values[3]) & 0xd0) == 0;
    header.same = definition + header.grid + (simple ? std::string{values[3], values[10]} : values);
    take_({begin_, {{begin_, length}}}, header);
    return end;
  }

  uint64_t scan_second_edition() {
    require_inside(begin_, 16, source_.size(), "the begin");
    const uint64_t length = big_endian(bytes_at(source_, {begin_ + 8, 8}));
    require_inside(begin_, length, source_.size(), "the end");
    const uint64_t end = begin_ + length;
    require_end(end);
    std::array<std::optional<Piece>, 8> parts;  // by the number of the section
    std::vector<std::array<std::optional<Piece>, 8>> fields;
    std::optional<Piece> bitmap;
    for (uint64_t at = begin_ + 16; at < end - 4;) {
      const Piece part = section(at, end - 4, 4, 5, "a section");
      const auto number = static_cast<unsigned char>(bytes_at(source_, {at + 4, 1})[0]);
      if (number < 1 || number > 7) source_.fail(begin_, "section {} of the message, at byte {}", number, at);
      parts[number] = part;
      if (number == 6) take_bitmap(parts[6], bitmap);
      if (number == 7) fields.push_back(parts);
      if (fields.size() > most_fields) source_.fail(begin_, "the message has more than {} fields", most_fields);
      at += part.length;
    }
    if (fields.empty()) source_.fail(begin_, "the message has no values");
    for (const auto& field : fields) take_second_edition(field, length, fields.size() == 1);
    return end;
  }

  // Its number 254 is for the last one that was given in the message.
  void take_bitmap(std::optional<Piece>& part, std::optional<Piece>& last) const {
    if (part->length < 6) source_.fail(begin_, "the bitmap of the message has {} bytes", part->length);
    const auto kind = static_cast<unsigned char>(bytes_at(source_, {part->offset + 5, 1})[0]);
    if (kind == 0) last = part;
    if (kind == 254 && !last) source_.fail(begin_, "the message has no bitmap before byte {}", part->offset);
    if (kind == 254) part = last;
  }

  void take_second_edition(const std::array<std::optional<Piece>, 8>& parts, uint64_t length, bool alone) {
    GribField field{begin_, {{begin_, 16}}};
    GribHeader header{.message = bytes_at(source_, field.pieces[0])};
    header.same = header.message.substr(0, 8);  // the discipline
    for (size_t number = 1; number < parts.size(); ++number) {
      if (!parts[number]) {
        if (number == 2) continue;  // of a centre's own
        source_.fail(begin_, "the message has no section {}", number);
      }
      field.pieces.push_back(*parts[number]);
      if (number < 6) add_section(number, described(*parts[number], "a section"), header);
    }
    header.message += std::string("\0\0\0\6\6\xff\0\0\0\5\7", 11);  // no bitmap, and no values
    header.message += grib_end;
    set_big_endian(header.message, 8, 8, header.message.size());
    field.pieces.push_back({begin_ + length - 4, 4});
    if (alone) field.pieces = {{begin_, length}};
    take_(std::move(field), header);
  }

  void add_section(size_t number, std::string section, GribHeader& header) const {
    header.message += section;
    if (number == 1) {
      if (section.size() < 21) source_.fail(begin_, "section 1 of the message has {} bytes", section.size());
      header.time =
          time_of(static_cast<int64_t>(big_endian(section.substr(12, 2))), std::string_view(section).substr(14, 4),
                  static_cast<int64_t>(big_endian(section.substr(18, 1))));
      blank(section, 12, 7);
    }
    if (number == 3) header.grid = section;
    header.same += number == 5 ? without_values(std::move(section)) : section;
  }

  const Source& source_;
  const std::function<void(GribField, const GribHeader&)>& take_;
  uint64_t begin_ = no_message;
};

}  // namespace

void for_each_grib_field(const Source& source, const std::function<void(GribField, const GribHeader&)>& take) {
  GribScanner(source, take).scan();
}

std::string grib_message(const Source& source, const GribField& field) {
  uint64_t size = 0;
  for (const Piece& piece : field.pieces) size += piece.length;
  require_file_memory(source.name(), "a message", size);
  std::string message;
  message.reserve(size);
  for (const Piece& piece : field.pieces) message += bytes_at(source, piece);
  if (field.pieces.size() > 1) set_big_endian(message, 8, 8, size);
  return message;
}

}  // namespace convssm::io
