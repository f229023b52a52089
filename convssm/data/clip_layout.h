// What the dimensions of an array of clips are, as letters: N clips, T frames, C channels, H rows, W columns. A given layout has them
// in any order. One that is not given is guessed, by rules that are told with the guess:
//   [T,H,W]; of four dimensions the last is C if it is 1 to 4, else the second is, else there are N clips [N,T,H,W];
//   of five the last is C if it is 1 to 4, else the third is; else the two that are equal are H and W.
// A guess is an error that says which layouts to choose from where two equal sizes are followed by another one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace convssm::data {

struct ClipLayout {
  std::string letters;  // "THWC"
  std::string reason;   // "the last of 4 dimensions is 1 to 4, so it is the channels"
};

// `wanted` is "" or the letters. Error(data) that names the file if the array cannot be clips.
ClipLayout choose_layout(const std::string& file, std::span<const int64_t> shape, const std::string& wanted);

// A usual layout of an array of this shape that has so many channels and is not the guessed one; "" if there is none.
std::string layout_with_channels(const ClipLayout& guessed, std::span<const int64_t> shape, int64_t channels);

// Throws Error(usage) unless `letters` is "" or a layout: T, H and W, with or without N and C, each once.
void check_layout(const std::string& letters);

// For help texts: "T, H, W and, if there are, N and C, in the order of the dimensions, such as THWC or NHWT".
extern const char* const layout_letters_text;

// Whether the frames of a clip follow each other, rows in order: THW, TCHW, THWC, and the same with N in front. Of other layouts
// they are gathered.
bool frames_lie_whole(const ClipLayout& layout);

// Whether channels are the last dimension of frames as they are read; gathered ones are [T,C,H,W].
bool channels_last(const ClipLayout& layout);

// Of one clip as others would write it: THWC, TCHW or THW.
std::string usual_clip_letters(const ClipLayout& layout);

// The size of a dimension, 1 if the layout does not have it.
int64_t extent(const ClipLayout& layout, std::span<const int64_t> shape, char letter);

}  // namespace convssm::data
