// Grid files as a dataset: files and windows that are left out where that is wanted.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/data/folder.h"
#include "field_files.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;
using testing::hours_from;
using testing::write_fields;

class SkippedFields : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::shared_ptr<const Dataset> dataset(nlohmann::json options) const {
    options["path"] = folder_.path();
    return make_folder(options, 1);
  }

  ScratchFolder folder_;
};

// Of one recording without gaps another window of it is taken.
TEST_F(SkippedFields, WindowsOfOneLongRecordingAreLeftOut) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 12), .blank = {2, 3, 4, 5, 6, 7}});
  nlohmann::json options{{"variables", {"t2m"}}, {"low", 200},         {"high", 400},
                         {"on_error", "skip"},   {"test_fraction", 0}, {"valid_fraction", 0}};
  const auto data = dataset(options);
  ASSERT_EQ(data->size(Split::train), 1u);
  for (uint64_t i = 0; i < 40; ++i) EXPECT_TRUE(data->clip(Split::train, i, 2).valid.any().item<bool>());
  write_fields(path("a.nc"), {.hours = hours_from(0, 3), .blank = {0, 1, 2}});
  expect_error([&] { dataset(options)->clip(Split::train, 0, 2); }, {"no pixel of a window of 2 frames was measured"});
}

TEST_F(SkippedFields, FilesOfASeriesThatCannotBeReadAreLeftOut) {
  write_fields(path("a.nc"), {.hours = hours_from(0, 10)});
  folder_.write("b.nc", "CDF\x01 and nothing else");
  write_fields(path("c.nc"), {.hours = hours_from(20, 10)});
  nlohmann::json options{{"variables", {"t2m"}}, {"low", 200}, {"high", 400}};
  expect_error([&] { dataset(options); }, {"b.nc"});
  options["on_error"] = "skip";
  const auto data = dataset(options);
  const auto notes = data->summary();
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note.find("1 of 3 files cannot be read and are left out: '") != std::string::npos &&
           note.find("b.nc'; the first: ") != std::string::npos;
  }));
  EXPECT_EQ(data->size(Split::train), 2u) << "the hours of the file are a gap";
  std::filesystem::remove(path("a.nc")), std::filesystem::remove(path("c.nc"));
  folder_.write("a.nc", "CDF\x01");
  expect_error([&] { dataset(options); }, {"2 of 2 files cannot be read"});
}

}  // namespace
}  // namespace convssm::data
