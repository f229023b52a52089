// Section 5 begins with its length (4 bytes), 5, the number of packed values (4), the number of the packing (2); then for the packings
// here a float (4), two scales (2 each) and the bits of a value (1).
#include "convssm/io/grib_packing.h"

#include <algorithm>
#include <array>

#include "convssm/base/error.h"

namespace convssm::io {
namespace {

enum : uint64_t { simple = 0, complex = 2, complex_differences = 3, jpeg = 40, ccsds = 42 };

class PackedValues {
 public:
  PackedValues(const std::string& file, uint64_t offset, std::string_view message) : file_(file), offset_(offset) {
    for (size_t at = 16; at + 5 < message.size();) {
      const uint64_t length = number(message, at, 4);
      const auto which = static_cast<size_t>(number(message, at + 4, 1));
      if (length < 5 || length > message.size() - at || which >= sections_.size()) refuse("its sections have changed");
      sections_[which] = message.substr(at, length);
      at += length;
      if (which == 7) break;
    }
  }

  void check() const {
    const std::string_view how = sections_[5], data = sections_[7].substr(std::min<size_t>(5, sections_[7].size()));
    const uint64_t values = number(how, 5, 4);
    switch (number(how, 9, 2)) {
      case simple:
        if (values * number(how, 19, 1) > 8 * data.size()) refuse("it has fewer bits than its values");
        return;
      case complex:
      case complex_differences:
        if (number(how, 31, 4) > values) refuse("it has more groups than values");
        return;
      case ccsds:
        check_ccsds(number(how, 22, 1), number(how, 23, 2));
        return;
      case jpeg:
        if (!data.empty()) check_jpeg(data, values);
        return;
      default:
        return;
    }
  }

 private:
  [[noreturn]] void refuse(const char* reason) const {
    throw FormatError(file_, offset_, fmt::format("the message: {}", reason));
  }

  uint64_t number(std::string_view bytes, size_t at, size_t count) const {
    if (at + count > bytes.size()) refuse("what tells how its values are packed is too short");
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  }

  void check_ccsds(uint64_t block, uint64_t blocks) const {
    const bool known = block == 8 || block == 16 || block == 32 || block == 64;
    if (!known || blocks < 1 || blocks > 4096) refuse("CCSDS has no such blocks");
  }

  // A codestream begins with the markers SOC and SIZ: its size, where its picture begins, its tiles, and how many components it has. A
  // file around it is not allowed.
  void check_jpeg(std::string_view data, uint64_t values) const {
    const uint64_t right = number(data, 8, 4), bottom = number(data, 12, 4);
    const uint64_t left = number(data, 16, 4), top = number(data, 20, 4);
    const bool is_picture = number(data, 0, 4) == 0xff4fff51 && right > left && bottom > top;
    if (!is_picture || number(data, 40, 2) != 1 || (right - left) > values || (bottom - top) > values ||
        (right - left) * (bottom - top) != values || number(data, 43, 2) != 0x0101) {
      refuse("its JPEG 2000 picture is not of its values");
    }
  }

  const std::string& file_;
  uint64_t offset_;
  std::array<std::string_view, 8> sections_ = {};
};

}  // namespace

void check_grib_packing(const std::string& file, uint64_t offset, std::string_view message) {
  if (message.size() > 16 && message[7] == 2) PackedValues(file, offset, message).check();
}

}  // namespace convssm::io
