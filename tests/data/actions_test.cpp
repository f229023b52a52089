// Files of actions: told apart by type and shape.
#include "convssm/data/actions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "tests/base/scratch_folder.h"
#include "tests/support.h"

namespace convssm::data {
namespace {

using convssm::testing::expect_error;

TEST(Actions, AFileHoldsThoseOfOneClipOrSeveral) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("a.npy");
  const auto sizes_of = [&](const io::Array& array) {
    io::write_npy(path, array);
    return read_action_file(path, "").sizes().vec();
  };
  EXPECT_EQ(sizes_of(io::make_array({4}, std::vector<int32_t>{0, 1, -1, 2})), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(read_action_file(path, "anything")[0][2].item<int64_t>(), -1);
  EXPECT_EQ(sizes_of(io::make_array({2, 3}, std::vector<uint8_t>(6))), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(sizes_of(io::make_array({3}, std::vector<uint16_t>{0, 60000, 2})), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(read_action_file(path, "")[0][1].item<int64_t>(), 60000);
  EXPECT_EQ(sizes_of(io::make_array({4, 2}, std::vector<float>(8))), (std::vector<int64_t>{1, 4, 2}));
  EXPECT_EQ(sizes_of(io::make_array({3, 4, 2}, std::vector<double>(24))), (std::vector<int64_t>{3, 4, 2}));
}

TEST(Actions, WhatIsNoneIsRefused) {
  const ScratchFolder scratch;
  for (const io::Array& array : {io::Array(io::DType::f32, {4}), io::Array(io::DType::i64, {2, 2, 2}),
                                 io::Array(io::DType::i64, {0}), io::Array(io::DType::i64, {})}) {
    io::write_npy(scratch.path("a.npy"), array);
    expect_error([&] { read_action_file(scratch.path("a.npy"), ""); }, {"a.npy", "[T, A]", "found"});
  }
  for (const int64_t value : {int64_t{1'000'000}, INT64_MAX}) {
    io::write_npy(scratch.path("a.npy"), io::make_array({2}, std::vector<int64_t>{0, value}));
    expect_error([&] { read_action_file(scratch.path("a.npy"), ""); }, {"a.npy", "0 to 999999"});
  }
  io::write_npy(scratch.path("a.npy"), io::make_array({1}, std::vector<int64_t>{INT64_MIN}));
  EXPECT_LT(read_action_file(scratch.path("a.npy"), "").item<int64_t>(), 0);  // masked
}

TEST(Actions, AreFoundByTheirKey) {
  const ScratchFolder scratch;
  const std::string path = scratch.path("a.npz");
  const std::vector<io::NamedArray> arrays{{"actions", io::make_array({3}, std::vector<int64_t>(3))},
                                           {"steering", io::make_array({5}, std::vector<int64_t>(5))}};
  io::write_npz(path, arrays, false);
  EXPECT_EQ(read_action_file(path, "").size(1), 3);
  EXPECT_EQ(read_action_file(path, "steering").size(1), 5);
  expect_error([&] { read_action_file(path, "stering"); }, {"a.npz", "did you mean 'steering'"});
  io::write_npz(path, std::vector<io::NamedArray>{{"plan", io::make_array({7}, std::vector<int64_t>(7))}}, false);
  EXPECT_EQ(read_action_file(path, "").size(1), 7);
}

}  // namespace
}  // namespace convssm::data
