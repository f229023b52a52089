// The header is the text of a Python dict. NumPy itself parses it with Python's own parser; here a parser of three keys
// is enough, every other value is refused with the NumPy call that would save numbers instead. Types that hold Python
// objects are never read: to load them would run code.
#include "convssm/io/npy_header.h"

#include <array>
#include <utility>

#include "convssm/base/error.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr uint32_t max_header_length = 1 << 20;  // 64 dimensions need less than 2 KB

constexpr std::array<std::pair<std::string_view, DType>, 14> codes = {{{"b1", DType::bool8},
                                                                       {"u1", DType::u8},
                                                                       {"i1", DType::i8},
                                                                       {"u2", DType::u16},
                                                                       {"i2", DType::i16},
                                                                       {"u4", DType::u32},
                                                                       {"i4", DType::i32},
                                                                       {"u8", DType::u64},
                                                                       {"i8", DType::i64},
                                                                       {"f2", DType::f16},
                                                                       {"f4", DType::f32},
                                                                       {"f8", DType::f64},
                                                                       {"c8", DType::c64},
                                                                       {"c16", DType::c128}}};

constexpr std::string_view advice = "save numbers instead: np.save(path, arr.astype('float32'))";

// The literal, read from left to right.
class Literal {
 public:
  Literal(const std::string& file, uint64_t offset, std::string_view text)
      : file_(file), offset_(offset), text_(text) {}

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw FormatError(file_, offset_ + position_, "npy header: " + fmt::format(text, std::forward<Args>(args)...));
  }

  // The next character that is not white space, 0 at the end.
  char peek() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool at_end() {
    peek();
    return position_ == text_.size();
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }

  void expect(char c, std::string_view where) {
    if (!accept(c)) refuse("expected '{}' {}, found {}", c, where, found());
  }

  std::string_view string(std::string_view what) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("expected {} in quotes, found {}", what, found());
    const size_t begin = ++position_;
    const size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) refuse("{} has no closing quote", what);
    position_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      return value;
    }
    refuse("expected True or False as fortran_order, found {}", found());
  }

  int64_t length() {
    if (peek() == '-') refuse("a length in shape is negative: {}", found());
    int64_t value = 0;
    const size_t begin = position_;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[position_] - '0', &value)) {
        refuse("a length in shape is not below 2^63");
      }
    }
    if (position_ == begin) refuse("expected a whole number in shape, found {}", found());
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // written by Python 2
    return value;
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> lengths;
    expect('(', "before the lengths of shape");
    while (!accept(')')) {
      if (lengths.size() == max_npy_dimensions) refuse("shape has more than {} dimensions", max_npy_dimensions);
      lengths.push_back(length());
      if (accept(',')) continue;
      if (lengths.size() == 1) refuse("shape of one dimension must be written (n,), found {}", found());
      expect(')', "after the lengths of shape");
      break;
    }
    return lengths;
  }

  std::string found() const {
    return position_ < text_.size() ? in_quotes(text_.substr(position_, 20)) : "the end of the header";
  }

 private:
  const std::string& file_;
  uint64_t offset_;
  std::string_view text_;
  size_t position_ = 0;
};

[[noreturn]] void refuse_descr(const Literal& literal, std::string_view descr) {
  const char kind = descr.size() > 1 ? descr[1] : '\0';
  if (kind == 'O') {
    literal.refuse("dtype {} holds Python objects, which are not read as loading them can run code; {}",
                   in_quotes(descr), advice);
  }
  if (kind == 'S' || kind == 'U' || kind == 'a') literal.refuse("dtype {} holds text; {}", in_quotes(descr), advice);
  if (kind == 'V') literal.refuse("dtype {} holds raw bytes, perhaps bfloat16; {}", in_quotes(descr), advice);
  literal.refuse("dtype {} is not supported; {}", in_quotes(descr), advice);
}

void parse_descr(Literal& literal, NpyHeader& header) {
  if (literal.peek() == '[') {
    literal.refuse("a structured dtype is not supported; save each field: np.save(path, arr['field'])");
  }
  const std::string_view descr = literal.string("descr");
  if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) {
    refuse_descr(literal, descr);
  }
  const auto code = std::ranges::find(codes, descr.substr(1), [](const auto& entry) { return entry.first; });
  if (code == codes.end()) refuse_descr(literal, descr);
  header.info.dtype = code->second;
  header.big_endian = descr[0] == '>';
  if (descr[0] == '|' && dtype_size(code->second) > 1) literal.refuse("dtype {} has no byte order", in_quotes(descr));
}

// Returns the bit of the key, so that the caller sees repeated and missing ones.
unsigned parse_entry(Literal& literal, NpyHeader& header) {
  const std::string_view key = literal.string("a key");
  literal.expect(':', "after a key");
  if (key == "descr") return parse_descr(literal, header), 1;
  if (key == "fortran_order") return header.fortran_order = literal.boolean(), 2;
  if (key == "shape") return header.info.shape = literal.shape(), 4;
  literal.refuse("unknown key {}; known are descr, fortran_order and shape", in_quotes(key));
}

// The dict literal of the file `name`, which begins at byte `offset` of it.
NpyHeader parse_header(const std::string& name, uint64_t offset, std::string_view text) {
  Literal literal(name, offset, text);
  NpyHeader header;
  unsigned seen = 0;
  literal.expect('{', "at the start");
  while (!literal.accept('}')) {
    const unsigned bit = parse_entry(literal, header);
    if (seen & bit) literal.refuse("a key is there twice");
    seen |= bit;
    if (literal.accept(',')) continue;
    literal.expect('}', "or ',' after a value");
    break;
  }
  if (!literal.at_end()) literal.refuse("expected nothing after '}}', found {}", literal.found());
  if (seen != 7) literal.refuse("one of the keys descr, fortran_order and shape is missing");
  return header;
}

}  // namespace

NpyHeader read_npy_header(Reader& reader) {
  std::array<std::byte, 12> prefix{};
  reader.read(std::span(prefix).first(8));
  const std::string_view magic(reinterpret_cast<const char*>(prefix.data()), 6);
  if (magic != "\x93NUMPY")
    reader.fail(0, "expected the magic '\\x93NUMPY' of a .npy file, found {}", in_quotes(magic));
  const unsigned version = std::to_integer<unsigned>(prefix[6]);
  const unsigned minor = std::to_integer<unsigned>(prefix[7]);
  if (version < 1 || version > 3 || minor != 0) {
    reader.fail(6, "npy version {}.{} is not known; known are 1.0, 2.0 and 3.0", version, minor);
  }
  const size_t width = version == 1 ? 2 : 4;
  reader.read(std::span(prefix).subspan(8, width));
  const auto length = load<uint32_t>(prefix.data() + 8);
  if (length > max_header_length) reader.fail(8, "the header has {} bytes, more than {}", length, max_header_length);
  if (length > reader.size() - reader.position()) {
    reader.fail(8, "the header has {} bytes, but only {} follow: the file is cut short", length,
                reader.size() - reader.position());
  }
  std::string text(length, '\0');
  reader.read(std::as_writable_bytes(std::span(text)));
  return parse_header(reader.name(), 8 + width, text);
}

std::string npy_descr(DType dtype) {
  const auto code = std::ranges::find(codes, dtype, [](const auto& entry) { return entry.second; });
  if (code == codes.end()) {
    fail(ErrorKind::usage, "[npy] NumPy has no type for {}: convert it to f32, or write safetensors",
         dtype_name(dtype));
  }
  return fmt::format("{}{}", dtype_size(dtype) == 1 ? '|' : '<', code->first);
}

}  // namespace convssm::io
