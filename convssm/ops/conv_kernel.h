// The implementations behind PackedConv: one file each, chosen in packed_conv.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "convssm/ops/packed_conv.h"

namespace convssm::ops {

class ConvKernel {
 public:
  virtual ~ConvKernel() = default;
  virtual size_t scratch_bytes(int64_t frames) = 0;
  virtual void run(const float* x, float* y, int64_t frames, void* scratch, const ConvEpilogue& epilogue) = 0;
};

std::unique_ptr<ConvKernel> make_direct_conv(const ConvShape& shape, const float* weight, const float* bias);
std::unique_ptr<ConvKernel> make_int8_conv(const ConvShape& shape, const float* weight, const float* bias,
                                           const ConvInputRange& input);
std::unique_ptr<ConvKernel> make_winograd_conv(const ConvShape& shape, const float* weight, const float* bias);
std::unique_ptr<ConvKernel> make_winograd_int8_conv(const ConvShape& shape, const float* weight, const float* bias,
                                                    const ConvInputRange& input);

// What make_int8_conv stands on: y = scale (conv(q, values) + bias), by what the library at hand has.
class ByteConv {
 public:
  virtual ~ByteConv() = default;
  virtual size_t scratch_bytes(int64_t frames) = 0;
  // q [frames,height+kernel-1,width+kernel-1,in]: the input with its border.
  virtual void run(const uint8_t* q, float* y, int64_t frames, void* scratch) = 0;
};

struct ByteWeights {
  std::vector<int8_t> values;       // [out,in,kernel,kernel]
  std::vector<float> scales, bias;  // [out]
};
std::unique_ptr<ByteConv> make_byte_conv(const ConvShape& shape, const ByteWeights& weights);

// Whether this CPU has instructions that sum products of four bytes (VNNI), and a ByteConv uses them.
bool has_byte_products();

// Whether a ByteConv sums the products of two neighbouring channels (even, odd) in 16 bits, which cuts at 32767: weights
// of one sign must then not sum to more than 128 there.
bool cuts_byte_sums();

// y = activation(y + add), for kernels that have no epilogue of their own.
void apply_epilogue(float* y, int64_t size, const ConvEpilogue& epilogue);

}  // namespace convssm::ops
