// What the dimensions of an array of clips are, as letters: N clips, T frames, C channels, H rows, W columns.
// A layout that is not given is guessed, by rules that are told with the guess:
//   [T,H,W]; of four dimensions the last is C if it is 1 to 4, else the second is, else there are N clips [N,T,H,W];
//   of five the last is C if it is 1 to 4, else the third is; else the two that are equal are H and W.
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

// Throws Error(usage) unless `letters` is "" or a known layout.
void check_layout(const std::string& letters);

// The size of a dimension, 1 if the layout does not have it.
int64_t extent(const ClipLayout& layout, std::span<const int64_t> shape, char letter);

}  // namespace convssm::data
