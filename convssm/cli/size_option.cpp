// Sizes of frames as people write them.
#include "convssm/cli/size_option.h"

#include <charconv>

#include "convssm/base/error.h"

namespace convssm::cli {

std::pair<int64_t, int64_t> parse_size(const std::string& text) {
  const size_t cut = text.find('x');
  const auto side = [&](const std::string& digits) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && end == digits.data() + digits.size() && value > 0) return value;
    fail(ErrorKind::usage, "--size must be the height and width of the frames, as 64x64, got '{}'", text);
  };
  if (cut == std::string::npos) return {side(text), side(text)};
  return {side(text.substr(0, cut)), side(text.substr(cut + 1))};
}

}  // namespace convssm::cli
