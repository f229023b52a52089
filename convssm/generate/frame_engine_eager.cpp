// A model run by its own next(): every core.
#include <ATen/ATen.h>

#include "convssm/generate/frame_engine.h"

namespace convssm::generate {
namespace {

class EagerEngine : public FrameEngine {
 public:
  explicit EagerEngine(models::Model& model) : model_(model) {}
  bool empty() const override { return state_.empty(); }
  void begin(const at::Tensor& context, const at::Tensor& actions) override { state_ = model_.start(context, actions); }
  void load(const models::State& state) override { state_ = state; }
  models::State save() const override { return state_; }

  void replace(const at::Tensor& frame) override { state_.set("frame", frame.clone()); }

  void feed(const at::Tensor& frame, const at::Tensor& action) override {
    state_ = model_.start(frame.unsqueeze(1), action.defined() ? action.unsqueeze(1) : action, state_);
  }

  at::Tensor forecast(const at::Tensor& action) override {
    models::FrameOutput out = model_.next(state_, action);
    state_ = std::move(out.state);
    return out.frame.clone();  // the state keeps the other
  }

 private:
  models::Model& model_;
  models::State state_;
};

}  // namespace

std::unique_ptr<FrameEngine> make_eager_engine(models::Model& model) { return std::make_unique<EagerEngine>(model); }

}  // namespace convssm::generate
