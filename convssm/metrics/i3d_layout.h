// What I3D consists of, layer by layer, and its tensors in a file. All sizes and strides are the same in the three
// dimensions unless said otherwise; padding is TensorFlow's SAME: ceil(n / stride) outputs, the odd one of the padding
// behind. A unit is a convolution without bias, batch norm with offset but no scale (epsilon 0.001), ReLU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace convssm::io {
class SafetensorsFile;
}

namespace convssm::metrics {

struct I3dUnit {
  std::string name;  // below RGB/inception_i3d/
  int64_t kernel, stride, in, out;
};

struct I3dPool {  // maximum
  int64_t time_kernel, time_stride, kernel, stride;
};

// An Inception block: four branches on the same input, their outputs one behind the other in the channels.
//   0: 1x1    1: 1x1, 3x3    2: 1x1, 3x3    3: maximum over 3x3, 1x1
struct I3dMixed {
  I3dUnit branch0, reduce1, branch1, reduce2, branch2, branch3;
};

using I3dStage = std::variant<I3dUnit, I3dPool, I3dMixed>;

// In order. Behind them: average over 2 x 7 x 7, then i3d_last_unit with a bias and nothing else, then the mean over time.
const std::vector<I3dStage>& i3d_stages();
I3dUnit i3d_last_unit();

// Padding of a dimension of n values.
struct SamePadding {
  int64_t front, back;
};
SamePadding same_padding(int64_t n, int64_t kernel, int64_t stride);

// Every tensor with its shape in TensorFlow's order, kernels [k,k,k,in,out].
std::vector<std::pair<std::string, std::vector<int64_t>>> i3d_tensors();

// The weights file, checked as a whole when it is opened.
class I3dWeights {
 public:
  explicit I3dWeights(const std::string& path);
  ~I3dWeights();

  struct Unit {
    at::Tensor kernel;                  // [out,in,k,k,k]
    at::Tensor offset, mean, variance;  // [out]; of the last unit only `offset`, its bias
  };
  Unit read(const I3dUnit& unit) const;

  // Batch norm folded into the convolution, in float64.
  struct Folded {
    at::Tensor kernel, bias;
  };
  Folded folded(const I3dUnit& unit) const;

 private:
  at::Tensor tensor(const std::string& name) const;
  std::unique_ptr<io::SafetensorsFile> file_;
};

constexpr double i3d_epsilon = 1e-3;

}  // namespace convssm::metrics
