// Highway keeps the chosen target in a global; force_isa narrows the set of supported ones and makes it choose again.
// That is how one machine tests the code of all its instruction sets.
#include "convssm/ops/isa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "convssm/base/error.h"

namespace convssm::ops {
namespace {

std::vector<int64_t> targets() {
  std::vector<int64_t> found;
  for (int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) found.push_back(left & -left);
  return found;  // in Highway a lower bit is a better target
}

}  // namespace

const char* isa_name() { return hwy::TargetName(targets().front()); }

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const int64_t target : targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void force_isa(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  for (const int64_t target : targets()) {
    if (name == hwy::TargetName(target)) hwy::SetSupportedTargetsForTest(target);
  }
  const bool found = name.empty() || name == isa_name();
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  if (!found) fail(ErrorKind::usage, "[force_isa] expected one of {}, got '{}'", fmt::join(isa_names(), ", "), name);
}

}  // namespace convssm::ops
