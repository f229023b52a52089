// The file is held in memory and looked through once for where its pictures begin; sizes are compared with what is there before
// anything is allocated for pixels.
#include "convssm/io/pnm.h"

#include <algorithm>
#include <string_view>

#include "convssm/base/file_memory.h"

namespace convssm::io {
namespace {

constexpr uint64_t max_pnm_side = 1 << 15;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

struct Pnm {
  bool text = false;
  uint64_t width = 0, height = 0, channels = 1, largest = 0;
  size_t begin = 0;  // of its pixels

  size_t item() const { return largest > 255 ? 2 : 1; }
  uint64_t values() const { return width * height * channels; }
  bool fits(const Pnm& other) const {
    return width == other.width && height == other.height && channels == other.channels && largest == other.largest;
  }
};

class PnmParser {
 public:
  explicit PnmParser(const Source& source) : source_(source) {
    require_file_memory(source.name(), "its bytes", source.size());
    text_.resize(source.size());
    source.read(0, std::as_writable_bytes(std::span(text_)));
    do {
      pictures_.push_back(read_header());
      if (!pictures_.back().fits(pictures_[0])) source.fail(at_, "pictures of several sizes or types in one file");
      pass_pixels(pictures_.back());
    } while (at_ < text_.size());
  }

  ArrayInfo info() const {
    const Pnm& first = pictures_[0];
    const auto length = [](uint64_t size) { return static_cast<int64_t>(size); };
    return {first.item() == 2 ? DType::u16 : DType::u8,
            {std::ssize(pictures_), length(first.height), length(first.width), length(first.channels)}};
  }

  Array read() {
    const auto [dtype, shape] = info();
    Array all = array_of_file(source_.name(), dtype, shape);
    if (dtype == DType::u16) {
      fill(all.values<uint16_t>().data());
    } else {
      fill(all.values<uint8_t>().data());
    }
    return all;
  }

 private:
  // Blanks and remarks.
  void pass_space() {
    for (; at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == '#'); ++at_) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size() - 1);
    }
  }

  uint64_t read_number(const char* what) {
    pass_space();
    uint64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = std::min<uint64_t>(10 * value + static_cast<uint64_t>(text_[at_] - '0'), 1 << 20);
    }
    if (at_ == begin) source_.fail(at_, "expected {} of a PNM picture", what);
    return value;
  }

  Pnm read_header() {
    const std::string_view magic = std::string_view(text_).substr(at_, 2);
    if (magic != "P2" && magic != "P3" && magic != "P5" && magic != "P6") {
      source_.fail(at_, "expected a PNM picture, P2, P3, P5 or P6");
    }
    Pnm one;
    one.text = magic[1] < '5', one.channels = magic == "P3" || magic == "P6" ? 3 : 1;
    at_ += 2;
    one.width = read_number("the width"), one.height = read_number("the height");
    one.largest = read_number("the largest value");
    if (one.width < 1 || one.height < 1 || one.width > max_pnm_side || one.height > max_pnm_side) {
      source_.fail(at_, "a picture of {} x {} pixels; its sides must be 1 to {}", one.height, one.width, max_pnm_side);
    }
    if (one.largest < 1 || one.largest > 65535) source_.fail(at_, "the largest value must be 1 to 65535");
    if (!one.text && (at_ == text_.size() || !is_space(text_[at_])))
      source_.fail(at_, "expected a blank before the pixels");
    one.begin = at_ + 1;
    return one;
  }

  void pass_pixels(const Pnm& one) {
    // A number of a text has a blank before it.
    const uint64_t bytes = one.values() * (one.text ? 2 : one.item());
    const uint64_t left = text_.size() - std::min(one.text ? at_ : one.begin, text_.size());
    if (bytes > left) {
      source_.fail(text_.size(), "the picture is cut short: it needs {} bytes, {} are left", bytes, left);
    }
    if (one.text) {
      at_ = text_.size();  // nothing may follow
      return;
    }
    at_ = one.begin + bytes;
    if (std::all_of(text_.begin() + static_cast<ptrdiff_t>(at_), text_.end(), is_space)) at_ = text_.size();
  }

  template <typename T>
  void fill(T* out) {
    for (const Pnm& one : pictures_) {
      at_ = one.begin;
      for (uint64_t i = 0; i < one.values(); ++i) {
        const uint64_t value = one.text ? read_number("a number") : take(one.item());
        if (value > one.largest) source_.fail(at_, "a value of {} is above the largest, {}", value, one.largest);
        *out++ = static_cast<T>(one.largest < 255 ? (value * 255 + one.largest / 2) / one.largest : value);
      }
      if (!one.text) continue;
      pass_space();
      if (at_ != text_.size()) source_.fail(at_, "something follows the last number of the picture");
    }
  }

  uint64_t take(size_t item) {
    uint64_t value = 0;
    for (; item > 0; --item) value = value << 8 | static_cast<uint8_t>(text_[at_++]);
    return value;
  }

  const Source& source_;
  std::string text_;
  size_t at_ = 0;
  std::vector<Pnm> pictures_;
};

}  // namespace

Array read_pnm(const std::string& path) { return read_pnm(open_source(path)); }

Array read_pnm(std::shared_ptr<const Source> source) { return PnmParser(*source).read(); }

ArrayInfo read_pnm_info(std::shared_ptr<const Source> source) { return PnmParser(*source).info(); }

}  // namespace convssm::io
