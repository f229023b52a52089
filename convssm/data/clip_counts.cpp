#include "convssm/data/clip_counts.h"

#include <fmt/format.h>

#include "convssm/base/option_reader.h"

namespace convssm::data {

void ClipCounts::read_options(OptionReader& read) {
  read("clips", clips);
  read("valid_clips", valid_clips);
  read("test_clips", test_clips);
}

uint64_t ClipCounts::of(Split split) const {
  const uint64_t count = split == Split::train ? clips : split == Split::valid ? valid_clips : test_clips;
  return count == 0 ? any_count : count;
}

std::string ClipCounts::text() const {
  const auto one = [this](Split split) {
    return of(split) == any_count ? std::string("any number of") : fmt::format("{}", of(split));
  };
  const std::string train = one(Split::train), valid = one(Split::valid), test = one(Split::test);
  return train == valid && train == test
             ? fmt::format("{} clips of any length in each split", train)
             : fmt::format("{} training, {} validation and {} test clips of any length", train, valid, test);
}

}  // namespace convssm::data
