#include "convssm/evaluate/references.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/base/registry.h"
#include "convssm/evaluate/advection.h"
#include "convssm/evaluate/climatology.h"
#include "convssm/metrics/measured.h"

namespace convssm::evaluate {
namespace {

class LastFrame : public Reference {
 public:
  at::Tensor forecast(const Past& past, int64_t frames) const override {
    return metrics::last_measured(past.video, past.valid).unsqueeze(1).repeat({1, frames, 1, 1, 1});
  }
};

class BlankFrame : public Reference {
 public:
  at::Tensor forecast(const Past& past, int64_t frames) const override {
    return at::full_like(past.video.slice(1, 0, 1), -1).repeat({1, frames, 1, 1, 1});
  }
};

template <typename T>
std::unique_ptr<Reference> plain(const data::Dataset&) {
  return std::make_unique<T>();
}

Registry<ReferenceInfo>& reference_registry() {
  static Registry<ReferenceInfo> all(
      "reference", {{"copy last frame", "persistence: the last frame, of each pixel the last value that was measured",
                     true, true, false, plain<LastFrame>},
                    {"blank frame", "the lowest value everywhere", true, false, false, plain<BlankFrame>},
                    {"climatology", "the mean of the training frames of this hour of the day and month", false, true,
                     true, make_climatology},
                    {"advection", "the last frame carried on along the motion of the last frames", false, true, false,
                     make_advection}});
  return all;
}

}  // namespace

const std::vector<ReferenceInfo>& all_references() { return reference_registry().all(); }
const ReferenceInfo& find_reference(const std::string& name) { return reference_registry().find(name); }
void register_reference(ReferenceInfo info) { reference_registry().add(std::move(info)); }

const NamedReference* References::usual() const {
  const auto found = std::ranges::find_if(all, [](const NamedReference& one) { return one.info->usual; });
  return found == all.end() ? nullptr : &*found;
}

References make_references(const std::vector<std::string>& names, bool fields, const data::Dataset& dataset) {
  References made;
  for (const std::string& name : names) {
    const ReferenceInfo& info = find_reference(name);
    made.all.push_back({&info, info.make(dataset)});
  }
  if (!names.empty()) return made;
  for (const ReferenceInfo& info : all_references()) {
    if (!(fields ? info.fields : info.pictures)) continue;
    try {
      made.all.push_back({&info, info.make(dataset)});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      made.left_out.push_back(info.name + ": " + error.what());
    }
  }
  return made;
}

}  // namespace convssm::evaluate
