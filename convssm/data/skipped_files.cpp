#include "convssm/data/skipped_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace convssm::data {

void SkippedFiles::add(const std::string& name, const Error& error) {
  if (!is_of_files(error)) throw error;
  if (names_.empty()) reason_ = error.what();
  names_.push_back(fmt::format("'{}'", name));
}

std::string SkippedFiles::text(size_t files, const char* things) const {
  return fmt::format("{} of {} {} cannot be read and are left out: {}; the first: {}", names_.size(), files, things,
                     some_of(names_), reason_);
}

std::string some_of(const std::vector<std::string>& names) {
  const size_t shown = std::min<size_t>(5, names.size());
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < names.size() ? ", ..." : "");
}

}  // namespace convssm::data
