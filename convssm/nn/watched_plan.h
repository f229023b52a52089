// A plan that can be built twice: for 8-bit integers first in float32, watching what its convolutions see, then from what they
// saw. In float32 it is built once and settle() does nothing.
#pragma once

#include <functional>
#include <memory>

#include "convssm/nn/frame_plan.h"

namespace convssm::nn {

class WatchedPlan {
 public:
  using Build = std::function<void(FramePlan&)>;  // everything but finish()

  WatchedPlan(int64_t batch, bool int8, Build build);

  bool watching() const { return watching_; }

  // To integers. The doors are other tensors afterwards, with the values they had.
  void settle();

  FramePlan& operator*() { return *plan_; }
  const FramePlan& operator*() const { return *plan_; }
  FramePlan* operator->() { return plan_.get(); }
  const FramePlan* operator->() const { return plan_.get(); }

 private:
  std::unique_ptr<FramePlan> built(const FramePlanOptions& options) const;

  Build build_;
  bool watching_;
  std::unique_ptr<FramePlan> plan_;
};

}  // namespace convssm::nn
