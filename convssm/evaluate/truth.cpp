// A tokenizer bounds what its model can forecast. Compared with originals, a forecast pays for both; compared with
// reconstructions, for the forecast alone.
#include "convssm/evaluate/truth.h"

#include <ATen/ATen.h>

#include "convssm/base/error.h"

namespace convssm::evaluate {
namespace {

models::Tokenizer* required_tokenizer(models::Model& model, const data::CodeFormat& codes) {
  models::Tokenizer* tokenizer = model.as_tokenizer();
  if (tokenizer == nullptr) {
    fail(ErrorKind::usage,
         "[evaluate] the clips hold codes, and only a model with a tokenizer can make frames of them: {} has none; "
         "evaluate it on the frames that were encoded",
         model.description());
  }
  const models::CodeFormat known = tokenizer->codes();
  if (known.height == codes.height && known.width == codes.width && codes.count <= known.count) return tokenizer;
  fail(ErrorKind::data, "[evaluate] the tokenizer of the model has {} codes in {} x {}, the clips have {} in {} x {}",
       known.count, known.height, known.width, codes.count, codes.height, codes.width);
}

}  // namespace

Truth::Truth(models::Model& model, const data::Dataset& dataset, Real real)
    : tokenizer_(model.as_tokenizer()),
      device_(models::device_of(model)),
      codes_(!dataset.codes().none()),
      real_(real) {
  if (codes_) required_tokenizer(model, dataset.codes());
  if (real_ == Real::reconstructions && tokenizer_ == nullptr) {
    fail(ErrorKind::usage,
         "[evaluate] real: reconstructions needs a model with a tokenizer, {} has none; take originals",
         model.description());
  }
}

at::Tensor Truth::decode(const at::Tensor& codes) const { return tokenizer_->decode(codes.to(device_)).cpu(); }

at::Tensor Truth::give_back(const at::Tensor& video) const { return decode(tokenizer_->encode(video.to(device_))); }

TrueVideos Truth::of(const data::Clips& clips, int64_t K) const {
  if (codes_) return {decode(clips.codes)};
  const at::Tensor originals = clips.video.cpu();
  if (!has_ceiling()) return {originals};
  const at::Tensor future = originals.slice(1, K);
  if (real_ == Real::originals) return {originals, future, give_back(future)};  // that of the context nobody asks for
  const at::Tensor all = give_back(originals);
  return {all, future, all.slice(1, K)};
}

const char* Truth::name() const { return codes_ ? "codes" : evaluate::name(real_); }

data::FrameFormat scored_frames(models::Model& model, const data::Dataset& dataset) {
  const data::CodeFormat codes = dataset.codes();
  if (codes.none()) return dataset.format();
  const at::NoGradGuard no_grad;
  const models::EvalMode mode(model);
  const at::Tensor grid = at::zeros({1, 1, codes.height, codes.width}, at::kLong).to(models::device_of(model));
  const at::Tensor frame = required_tokenizer(model, codes)->decode(grid);
  return {frame.size(2), frame.size(3), frame.size(4)};
}

}  // namespace convssm::evaluate
