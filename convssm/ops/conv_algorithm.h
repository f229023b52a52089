// How convolutions are computed: directly, or by Winograd's algorithm where it applies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convssm::ops {

enum class ConvAlgorithm {
  automatic,  // Winograd where the kernels take the shape: a rule, so that equal runs give equal bytes
  measured,   // the faster one in a short trial on this machine, once per shape and process
  direct,     // never Winograd
};

const char* name(ConvAlgorithm algorithm);
ConvAlgorithm parse_conv_algorithm(const std::string& text);

// For all convolutions of the process from now on.
void set_conv_algorithm(ConvAlgorithm algorithm);

struct ConvKey {
  int64_t frames, height, width, in, out;
  auto operator<=>(const ConvKey&) const = default;
};

struct ConvTrial {
  ConvKey shape;
  double direct_ms, winograd_ms;
};

// Whether a 3x3 float32 convolution of this shape, stride 1, is run by Winograd's algorithm.
bool chooses_winograd(const ConvKey& shape);

// What was measured so far.
std::vector<ConvTrial> conv_trials();

}  // namespace convssm::ops
