// A model compiled for running one frame after another: a straight list of steps on buffers [batch,height,width,channels]
// that are allocated once, with weights that were folded and packed once. run() allocates no arrays and records no graph.
// Modules describe themselves to a plan by its building methods, in the order of their computation:
//   FramePlan plan({.batch = 1});
//   Buffer y = plan.conv(x, weight, bias);   ...   plan.finish();   plan.run();
// Buffers are reused when their last step is done. Parameters are read while building; later changes are not seen.
// A plan is for one thread at a time; it uses all threads itself.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convssm/ops/activation_kind.h"

namespace convssm::ops {
class PackedConv;
struct PixelStates;
}  // namespace convssm::ops

namespace convssm::nn {

struct Buffer {
  int64_t id = -1;
  int64_t channels = 0, height = 0, width = 0;
  int64_t pixels() const { return height * width; }
};

// The values that a convolution has seen in each channel of its input.
struct ChannelRange {
  std::vector<float> low, high;
};

struct FramePlanOptions {
  int64_t batch = 1;
  bool observe = false;                   // every run widens ranges()
  std::vector<ChannelRange> ranges = {};  // of another plan of the same model: convolutions in 8-bit integers
};

class FramePlan {
 public:
  explicit FramePlan(const FramePlanOptions& options);
  ~FramePlan();
  FramePlan(const FramePlan&) = delete;
  FramePlan& operator=(const FramePlan&) = delete;

  int64_t batch() const { return options_.batch; }

  // --- Doors: tensors of the plan that the outside reads and writes, by name. They begin at zero, states at their first
  // value.
  at::Tensor door(const std::string& name, at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
  // A door [B,C,H,W]; `first` [C] is its first value in every pixel, zero if undefined.
  Buffer state(const std::string& name, int64_t channels, int64_t height, int64_t width, const at::Tensor& first = {});
  void begin(const std::string& state);                           // gives it its first value again
  void set_scope(const std::string& prefix) { scope_ = prefix; }  // before names of states
  const std::map<std::string, at::Tensor>& doors() const { return doors_; }
  const std::vector<std::string>& states() const { return states_; }

  // --- Convolutions: y = activation(conv + bias + add). weight [O,C,k,k] or, for 1x1, [O,C]; bias may be undefined.
  struct After {
    Buffer add = {};  // nothing if its id is negative
    ops::Activation activation = ops::Activation::identity;
    bool exact = false;  // in float32 also where others are in bytes
  };
  Buffer conv(Buffer x, const at::Tensor& weight, const at::Tensor& bias, const After& after);
  Buffer conv(Buffer x, const at::Tensor& weight, const at::Tensor& bias) { return conv(x, weight, bias, After{}); }

  // Every channel with its own kernel, weight [C,1,kh,kw] of odd sides; in float32 always, and not one of ranges().
  Buffer depthwise(Buffer x, const at::Tensor& weight, const at::Tensor& bias);

  // Of stride 2, with weight [O,C,3,3] and a line of zeros at the right and the bottom; even sizes.
  Buffer conv_down(Buffer x, const at::Tensor& weight, const at::Tensor& bias);

  // softmax(q k^T / sqrt(channels)) v over the pixels of a frame, of each head's channels alone. Queries may be fewer.
  Buffer attention(Buffer q, Buffer k, Buffer v, int64_t heads = 1);

  // base + table[choice of the pixel]: table [rows,C], choice a door int64 [B,h,w] or [B,pixels].
  Buffer look_up(const at::Tensor& table, const at::Tensor& choice, Buffer base);

  // The pixels at `places`, a door int64 [B,c], as one row of c.
  Buffer pick(Buffer x, const at::Tensor& places);

  // --- Norms and elementwise steps, as in ops/norm.h and ops/activation.h.
  Buffer group_norm(Buffer x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                    ops::Activation activation);
  Buffer layer_norm(Buffer x, const at::Tensor& weight, const at::Tensor& bias);
  Buffer add_layer_norm(Buffer x, Buffer y, const at::Tensor& weight, const at::Tensor& bias);
  Buffer activate(Buffer x, ops::Activation activation);
  Buffer add(Buffer x, Buffer y, ops::Activation activation = ops::Activation::identity);
  void copy(Buffer x, Buffer to);
  Buffer gate(Buffer x, Buffer z);  // x sigmoid(z)
  Buffer multiply(Buffer x, Buffer y);
  void add_row(Buffer x, const at::Tensor& table, const at::Tensor& choice);  // x += table[choice of the sample]; a
                                                                              // negative choice is the last row
  // x *= sigmoid(up(relu(down(mean of x over the frame)))), dense layers with weight [O,C] and bias [O].
  void squeeze_excite(Buffer x, const at::Tensor& down, const at::Tensor& down_bias, const at::Tensor& up,
                      const at::Tensor& up_bias);

  // --- Frames and resolutions.
  Buffer pool2(Buffer x);                                                     // average of 2x2 pixels
  Buffer double_size(Buffer x);                                               // every pixel four times
  Buffer fold2(Buffer x);                                                     // 2x2 pixels become channels of one
  Buffer from_frame(const at::Tensor& frame, int64_t height, int64_t width);  // door [B,C,H,W], edges repeated
  void to_frame(Buffer x, const at::Tensor& frame);                           // tanh, cropped, to a door [B,C,H,W]
  void to_frame_clipped(Buffer x, const at::Tensor& frame);                   // cut to [-1,1] instead

  // --- Recurrences: the states change in place.
  void scan_step(Buffer state, const at::Tensor& a, Buffer b);  // state = a state + b; a complex [P], halves Re, Im
  // The same with an a for every pixel, of ops/pixel_steps.h: from a signal m of P channels, or moved by b. b is used up.
  void pixel_step(Buffer state, const ops::PixelStates& rates, Buffer m, Buffer b);
  void liquid_step(Buffer state, const at::Tensor& a_bar, const at::Tensor& l, Buffer b);
  void tanh_step(Buffer x, Buffer state);  // state = tanh(x)
  void lstm_step(Buffer from_u, Buffer from_h, Buffer c, Buffer h);
  Buffer gru_reset(Buffer from_u, Buffer zr_from_h, Buffer h);
  void gru_update(Buffer from_u, Buffer zr_from_h, Buffer n_from_h, Buffer h);

  // The states are complete here: run_states() ends at this point.
  void mark_states() { states_done_ = steps_.size(); }

  void finish();  // assigns the memory; no more building after it
  void run() { run_steps(steps_.size()); }
  void run_states() { run_steps(states_done_); }

  const std::vector<ChannelRange>& ranges() const { return seen_; }  // of the convolutions, in their order
  size_t bytes() const;                                              // of all buffers and doors, without weights

 private:
  struct Memory {
    int64_t size = 0;  // in floats
    float* data = nullptr;
    bool kept = false;
    size_t first = 0, last = 0;  // the steps that touch it
  };
  struct Step {
    std::function<void()> run;
    std::vector<int64_t> touched;  // ids of buffers
  };

  void scan_rows(Buffer state, const float* a, int64_t a_row, Buffer b, int64_t begin, int64_t end);
  Buffer make(int64_t channels, int64_t height, int64_t width);
  void step(std::initializer_list<Buffer> touched, std::function<void()> run);
  void run_steps(size_t end);
  void open_for(const Step& step);  // marks all of the arena that the step may not touch, for AddressSanitizer
  float* at(Buffer x) const { return memory_[x.id].data; }
  int64_t size(Buffer x) const { return options_.batch * x.pixels() * x.channels; }
  std::unique_ptr<ops::PackedConv> pack(Buffer x, const at::Tensor& weight, const at::Tensor& bias, bool exact);
  void observe(Buffer x);

  FramePlanOptions options_;
  std::string scope_;
  std::map<std::string, at::Tensor> doors_;
  std::vector<std::string> states_;
  std::map<std::string, at::Tensor> first_;  // [1,C,1,1], of states that do not begin at zero
  std::vector<Memory> memory_;
  std::vector<Step> steps_;
  size_t states_done_ = 0;
  std::vector<ChannelRange> seen_;
  size_t convs_ = 0, scratch_bytes_ = 0;
  bool finished_ = false;
  at::Tensor arena_, scratch_;
};

}  // namespace convssm::nn
