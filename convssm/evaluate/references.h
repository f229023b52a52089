// Forecasts that need no model and stand beside one, so that a number means something: the last frame again, nothing, the
// usual value of the hour and season, the last frame carried on by its motion. A program may add its own:
//   evaluate::register_reference({"persistence of anomalies", "...", false, true, false, make});
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convssm/data/dataset.h"

namespace convssm::evaluate {

// What a reference sees of a batch of clips.
struct Past {
  at::Tensor video;       // [B,K,C,H,W] in [-1,1]
  at::Tensor valid = {};  // [B,K,C,H,W] bool: pixels that were measured; undefined: all
  at::Tensor times = {};  // [B,K+N] float64 as Clips::timing.times, of the frames to come too; undefined: nobody knows
};

class Reference {
 public:
  virtual ~Reference() = default;
  virtual at::Tensor forecast(const Past& past, int64_t frames) const = 0;  // [B,frames,C,H,W] in [-1,1]
  virtual std::string about() const { return ""; }                          // what it is made of, if that is not plain
};

struct ReferenceInfo {
  std::string name;  // in tables
  std::string summary;
  bool pictures = false,
       fields = false;  // whether it stands beside forecasts of pictures, of fields, if nobody chooses
  bool usual = false;   // it is what anomalies are measured from
  // Throws Error(data) that says why there is none for this dataset.
  std::function<std::unique_ptr<Reference>(const data::Dataset& dataset)> make;
};

const std::vector<ReferenceInfo>& all_references();
const ReferenceInfo& find_reference(const std::string& name);  // Error(usage) that names the nearest
void register_reference(ReferenceInfo info);                   // Error(usage) if the name is taken

struct NamedReference {
  const ReferenceInfo* info;
  std::unique_ptr<Reference> reference;
};

struct References {
  std::vector<NamedReference> all;
  std::vector<std::string> left_out;  // "climatology: why"

  const NamedReference* usual() const;  // null: none of them
};

// Those of the names, of which each must be had; without names those that stand beside pictures or fields and can be had.
References make_references(const std::vector<std::string>& names, bool fields, const data::Dataset& dataset);

}  // namespace convssm::evaluate
