// One text for all of them.
#include "convssm/base/bounds.h"

#include "convssm/base/error.h"

namespace convssm {

void require_between(const char* owner, const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  fail(ErrorKind::usage, "[{}] {} must be {} to {}, got {}", owner, name, least, most, value);
}

}  // namespace convssm
