// Codes: a forecast is drawn, or the most likely of every pixel with top_k 1; then nothing random is asked for.
#include "convssm/models/fitvid/frame_side.h"

#include <ATen/ATen.h>

#include <cmath>

namespace convssm::models::fitvid {
namespace {

class PixelSide : public FrameSide {
 public:
  explicit PixelSide(const PixelInput& pixels) : pixels_(pixels) {}

  CoderFrames frames() const override { return {pixels_.channels, pixels_.channels, pixels_.height, pixels_.width}; }
  at::Tensor inputs_of(const char* operation, const Clips& clips) const override {
    return pixels_.inputs_of(operation, clips);
  }
  at::Tensor targets_of(const Clips& clips, const at::Tensor&) const override { return clips.video; }
  at::Tensor seen(const at::Tensor& inputs) override { return (inputs + 1) / 2; }

  at::Tensor errors(const at::Tensor& said, const at::Tensor& targets, const at::Tensor& valid) override {
    at::Tensor difference = at::sigmoid(said) - (targets + 1) / 2;
    if (valid.defined()) difference = difference * valid;
    return (difference * difference).flatten(1).mean(1);
  }
  std::string error_name() const override { return "mse"; }

  MadeFrame make(const at::Tensor& said, const at::Tensor&) override {
    const at::Tensor frame = at::sigmoid(said).contiguous();
    return {frame * 2 - 1, frame};
  }
  bool draws() const override { return false; }
  void check_data(const data::DataFormat& data) const override { pixels_.check_data(data); }

 private:
  PixelInput pixels_;
};

class CodeSide : public FrameSide {
 public:
  CodeSide(const CodeInput& codes, const CodeSideOptions& options) : codes_(codes), options_(options) {}

  CoderFrames frames() const override {
    const data::CodeFormat grid = codes_.format();
    return {codes_.features(), grid.count, grid.height, grid.width};
  }
  at::Tensor inputs_of(const char* operation, const Clips& clips) const override {
    return codes_.codes_of(operation, clips);
  }
  at::Tensor targets_of(const Clips&, const at::Tensor& inputs) const override { return inputs; }
  at::Tensor seen(const at::Tensor& inputs) override { return codes_.embed(inputs); }

  at::Tensor errors(const at::Tensor& said, const at::Tensor& targets, const at::Tensor&) override {
    return cross_entropy(said, targets, options_.label_smoothing).sum({1, 2});
  }
  std::string error_name() const override { return "cross_entropy"; }

  // NaN where the network says none, by which generation knows that the model has diverged.
  MadeFrame make(const at::Tensor& said, const at::Tensor& random) override {
    at::Tensor position = random;
    const at::Tensor sound = at::isfinite(said).flatten(1).all(1).view({-1, 1, 1, 1});
    const at::Tensor codes = draws() ? draw_codes(position, said, options_.sampling) : said.argmax(1);
    return {codes_.frames_of(codes).masked_fill(sound.logical_not(), NAN), seen(codes)};
  }
  bool draws() const override { return options_.sampling.draws(); }
  double* temperature_setting() override { return options_.sampling.temperature_setting(); }
  void check_data(const data::DataFormat& data) const override { codes_.check_data(data); }
  const CodeInput* codes() const override { return &codes_; }

 private:
  CodeInput codes_;
  CodeSideOptions options_;
};

}  // namespace

std::unique_ptr<FrameSide> make_pixel_side(const PixelInput& pixels) { return std::make_unique<PixelSide>(pixels); }

std::unique_ptr<FrameSide> make_code_side(const CodeInput& codes, const CodeSideOptions& options) {
  return std::make_unique<CodeSide>(codes, options);
}

}  // namespace convssm::models::fitvid
