// MP4 files list their packets, which are counted when they are read. AVI and Matroska say how many bytes belong to them: a RIFF
// chunk, then more of them in large files; an EBML header, then a segment. A writer that could not go back left no size.
#include "convssm/io/video_container.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "convssm/io/file_kind.h"

namespace convssm::io {
namespace {

constexpr std::array containers{
    VideoContainer{".mp4", "MP4", "mp4", false},
    VideoContainer{".mov", "QuickTime", "mov", false},
    VideoContainer{".avi", "AVI", "avi", false},
    VideoContainer{".mkv", "Matroska", "matroska", true},
};

void check_end(const Source& source, const char* name, uint64_t begin, uint64_t bytes) {
  if (begin <= source.size() && bytes <= source.size() - begin) return;
  source.fail(source.size(), "the {} file is cut short: it should have {} bytes", name, begin + bytes);
}

void check_avi(const Source& source, const char* name) {
  for (uint64_t at = 0; at + 12 <= source.size();) {
    std::array<std::byte, 12> head;
    source.read(at, head);
    const auto size = load<uint32_t>(&head[4]);
    if (std::memcmp(head.data(), "RIFF", 4) != 0 || size == 0 || size == UINT32_MAX) return;
    check_end(source, name, at + 8, size);
    at += 8 + uint64_t{size} + size % 2;
  }
}

// A number whose first byte says by its zeros how many follow.
struct EbmlNumber {
  uint64_t value;
  bool unknown;  // all ones
};

std::optional<EbmlNumber> read_ebml(const Source& source, uint64_t& at) {
  std::array<std::byte, 8> bytes{};
  if (at >= source.size()) return std::nullopt;
  source.read(at, std::span(bytes).first(1));
  const auto first = std::to_integer<uint8_t>(bytes[0]);
  const auto length = static_cast<size_t>(std::countl_zero(first)) + 1;
  if (length > 8 || length > source.size() - at) return std::nullopt;
  source.read(at, std::span(bytes).first(length));
  at += length;
  const uint64_t ones = (uint64_t{1} << (7 * length)) - 1;
  uint64_t value = 0;
  for (size_t i = 0; i < length; ++i) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return EbmlNumber{value & ones, (value & ones) == ones};
}

void check_matroska(const Source& source, const char* name) {
  constexpr std::array<std::byte, 4> segment{std::byte{0x18}, std::byte{0x53}, std::byte{0x80}, std::byte{0x67}};
  uint64_t at = 4;
  const auto header = read_ebml(source, at);
  if (!header || header->unknown) return;
  check_end(source, name, at, header->value);
  at += header->value;
  std::array<std::byte, 4> id;
  if (id.size() > source.size() - at) source.fail(source.size(), "the {} file is cut short", name);
  source.read(at, id);
  at += id.size();
  if (id != segment) return;
  const auto size = read_ebml(source, at);
  if (size && !size->unknown) check_end(source, name, at, size->value);
}

}  // namespace

const VideoContainer& container_of(const Source& source) {
  const std::string ending = file_kind(source).ending;
  const auto found = std::ranges::find_if(containers, [&](const auto& one) { return ending == one.ending; });
  if (found == containers.end()) source.fail(0, "not a video of MP4, QuickTime, AVI, Matroska or WebM");
  if (ending == ".avi") check_avi(source, found->name);
  if (ending == ".mkv") check_matroska(source, found->name);
  return *found;
}

}  // namespace convssm::io
