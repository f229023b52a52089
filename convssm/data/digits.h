// Where the digits of moving-mnist come from: drawn by this program, so that nothing has to be downloaded, or read from
// files in the format of MNIST. In both 0 is paper, 255 is ink, and the digits of the splits are disjoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::data {

struct Digit {
  int64_t size = 28;            // width and height
  std::vector<uint8_t> pixels;  // [size, size]
  int label = -1;               // -1: unknown
};

class DigitSource {
 public:
  virtual ~DigitSource() = default;
  virtual uint64_t count(Split split) const = 0;
  virtual Digit digit(Split split, uint64_t index) const = 0;  // called from several threads at once
  virtual std::string summary() const = 0;
};

// Digits drawn as strokes by many hands, 28x28, in the manner of MNIST: in a box of 20x20, centred by mass.
// Number `index` is digit index % 10 of hand index / 10; a function of (seed, split, index) only.
std::unique_ptr<DigitSource> drawn_digits(uint64_t seed);

struct IdxDigits {
  std::string images, labels;            // "" for no labels
  std::string test_images, test_labels;  // "": the last sixth of `images` is for testing
  bool mix_splits = false;               // all splits draw from all of `images`
};

// Images [n, s, s] u8 of IDX files. Of what is not for testing the last twelfth of the file is for validation.
std::unique_ptr<DigitSource> idx_digits(const IdxDigits& files);

// The digit at another size, by an antialiased linear filter.
Digit resize(const Digit& digit, int64_t size);

}  // namespace convssm::data
