// The rules of guessing, one function for each number of dimensions. A wrong guess would train on nonsense without an error,
// so every guess carries its reason, and what cannot be told is asked for.
#include "convssm/data/clip_layout.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "convssm/base/error.h"
#include "convssm/io/array.h"

namespace convssm::data {
namespace {

constexpr std::array<std::string_view, 6> usual_layouts{"THW", "TCHW", "THWC", "NTHW", "NTCHW", "NTHWC"};

bool few(int64_t size) { return size >= 1 && size <= 4; }

// Two equal sizes that are followed by another one are rows and columns rather than as many frames as rows; small ones say little.
constexpr int64_t kSquare = 16;

ClipLayout guess_of_3(std::span<const int64_t> shape) {
  const bool doubtful = shape[0] == shape[1] && shape[1] != shape[2];
  if (doubtful && shape[0] >= kSquare) {
    return {"", fmt::format("the first two are equal: set data.layout=HWT if frames come last, or THW if there are {} "
                            "frames of {} x {}",
                            shape[0], shape[1], shape[2])};
  }
  return {"THW", doubtful
                     ? "3 dimensions are frames, rows and columns; the first two are equal: where frames come last, "
                       "set layout HWT"
                     : "3 dimensions are frames, rows and columns"};
}

ClipLayout guess_of_4(std::span<const int64_t> shape) {
  if (few(shape[3])) return {"THWC", "the last of 4 dimensions is 1 to 4, so it is the channels"};
  if (few(shape[1])) return {"TCHW", "the second of 4 dimensions is 1 to 4, so it is the channels"};
  if (shape[1] == shape[2] && shape[2] != shape[3] && shape[1] >= kSquare) {
    return {"",
            fmt::format("the second and third are equal: set data.layout=THWC if the last are channels, NHWT if they "
                        "are frames, or NTHW if there are {} clips with frames of {} x {}",
                        shape[0], shape[2], shape[3])};
  }
  return {
      "NTHW",
      "none of 4 dimensions looks like channels (1 to 4 of them), so the first counts clips; where the "
      "second or the last are channels, set layout TCHW or THWC, and where clips are the second or frames the last, "
      "TNHW or NHWT"};
}

ClipLayout guess_of_5(std::span<const int64_t> shape) {
  if (few(shape[4])) return {"NTHWC", "the last of 5 dimensions is 1 to 4, so it is the channels"};
  if (few(shape[2])) return {"NTCHW", "the third of 5 dimensions is 1 to 4, so it is the channels"};
  if (shape[2] == shape[3] && shape[3] != shape[4]) return {"NTHWC", "frames are square in the third and fourth of 5"};
  if (shape[3] == shape[4] && shape[2] != shape[3]) return {"NTCHW", "frames are square in the last two of 5"};
  return {"", "set data.layout to NTCHW, NTHWC or another order of N, T, C, H, W"};
}

ClipLayout guess(std::span<const int64_t> shape) {
  if (shape.size() == 3) return guess_of_3(shape);
  if (shape.size() == 4) return guess_of_4(shape);
  return guess_of_5(shape);
}

}  // namespace

ClipLayout choose_layout(const std::string& file, std::span<const int64_t> shape, const std::string& wanted) {
  check_layout(wanted);
  if (!wanted.empty() && wanted.size() != shape.size()) {
    fail(ErrorKind::data, "[folder] '{}': layout {} needs {} dimensions, the array is {}", file, wanted, wanted.size(),
         io::shape_text(shape));
  }
  if (shape.size() < 3 || shape.size() > 5) {
    fail(ErrorKind::data, "[folder] '{}': clips have 3 to 5 dimensions, the array is {}; is this the right key?", file,
         io::shape_text(shape));
  }
  if (std::ranges::any_of(shape, [](int64_t size) { return size == 0; })) {
    fail(ErrorKind::data, "[folder] '{}': the array {} is empty", file, io::shape_text(shape));
  }
  ClipLayout layout;
  if (wanted.empty()) {
    layout = guess(shape);
  } else {
    layout = {wanted, "given"};
  }
  if (layout.letters.empty()) {
    fail(ErrorKind::data, "[folder] '{}': cannot tell which of {} are frames, rows, columns and channels; {}", file,
         io::shape_text(shape), layout.reason);
  }
  return layout;
}

std::string layout_with_channels(const ClipLayout& guessed, std::span<const int64_t> shape, int64_t channels) {
  for (const std::string_view letters : usual_layouts) {
    const size_t at = letters.find('C');
    if (letters.size() == shape.size() && at != std::string_view::npos && shape[at] == channels &&
        letters != guessed.letters)
      return std::string(letters);
  }
  return "";
}

void check_layout(const std::string& letters) {
  const auto times = [&](char letter) { return std::ranges::count(letters, letter); };
  const bool known = times('T') == 1 && times('H') == 1 && times('W') == 1 && times('N') <= 1 && times('C') <= 1;
  if (letters.empty() || (known && std::ssize(letters) == 3 + times('N') + times('C'))) return;
  fail(ErrorKind::usage, "[folder] layout must be {}, got '{}'", layout_letters_text, letters);
}

const char* const layout_letters_text =
    "T, H, W and, if there are, N and C, in the order of the dimensions, such as THWC or NHWT";

bool frames_lie_whole(const ClipLayout& layout) {
  return std::ranges::find(usual_layouts, layout.letters) != usual_layouts.end();
}

bool channels_last(const ClipLayout& layout) { return frames_lie_whole(layout) && layout.letters.back() == 'C'; }

std::string usual_clip_letters(const ClipLayout& layout) {
  const std::string& letters = layout.letters;
  if (frames_lie_whole(layout)) return letters.substr(letters[0] == 'N' ? 1 : 0);
  return letters.find('C') == std::string::npos ? "THW" : "THWC";
}

int64_t extent(const ClipLayout& layout, std::span<const int64_t> shape, char letter) {
  const size_t at = layout.letters.find(letter);
  return at == std::string::npos ? 1 : shape[at];
}

}  // namespace convssm::data
