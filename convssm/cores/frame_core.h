// Any core on frames of any channels: [L,B,C_in,H,W] -> [L,B,C_out,H,W]. What models take.
//   cores on frames   a 1x1 convolution C_in -> features, then the core; C_out = features
//   cores on tokens   patches of the frame compressed to a token each, the core, tokens expanded to patches again;
//                     C_out = `out_features`
// Compression and expansion are the convolution and the transposed convolution with kernel = stride = `patch`, computed
// as matrix products. The state is the core's.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convssm/cores/core.h"

namespace convssm::cores {

struct FrameShape {
  int64_t channels, height, width;
};

class FrameCore : public Core {
 public:
  virtual int64_t in_channels() const = 0;
  virtual int64_t out_channels() const = 0;

  // "" if the same parameters run frames of any height and width; otherwise why not.
  virtual std::string obstacle_to_other_sizes() const = 0;

  // A plan on x [..,C] followed by channels that are the same for all pixels: row `choice` of `rows` [R,A], with
  // C + A = in_channels(). Undefined rows: x has them all.
  virtual nn::Buffer plan_with_rows(nn::FramePlan& plan, const nn::Buffer& x, const at::Tensor& rows,
                                    const at::Tensor& choice);
};

// make_frame_core("transformer", {{"features", 1024}, {"layers", 8}, {"heads", 16}}, {257, 16, 16}, 1)
// Options are those of the core and, for cores on tokens, of the adaptor: `patch` (a number, or [height,width]; default
// the whole frame, one token) and `out_features` (default 256). `seed` draws the adaptor, and the core if its options
// have no seed.
std::shared_ptr<FrameCore> make_frame_core(const std::string& name, const nlohmann::json& options,
                                           const FrameShape& input, uint64_t seed);

// Throws for an unknown core and for options that nobody knows, before there are frames.
void check_frame_core(const std::string& name, const nlohmann::json& options);

}  // namespace convssm::cores
