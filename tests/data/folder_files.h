// Files of clips for the tests of the dataset `folder`.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../base/scratch_folder.h"
#include "../support.h"
#include "convssm/data/dataset.h"
#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"

namespace convssm::data {

using nlohmann::json;

// u8 [N,T,C,H,W], each value different from its neighbours.
inline at::Tensor numbers(at::IntArrayRef shape, int64_t seed = 0) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return ((at::arange(count, at::kLong) * 37 + seed * 11) % 256).view(shape).to(at::kByte);
}

inline at::Tensor expected(const at::Tensor& u8) { return (u8.to(at::kDouble) * 2 / 255 - 1).to(at::kFloat); }

class FolderTest : public ::testing::Test {
 protected:
  void npy(const std::string& name, const at::Tensor& values) {
    folder.write(name, "");
    io::write_npy(folder.path(name), io::to_array(values));
  }
  void npz(const std::string& name, const std::vector<std::pair<std::string, at::Tensor>>& arrays,
           bool compress = false) {
    folder.write(name, "");
    std::vector<io::NamedArray> named;
    for (const auto& [key, values] : arrays) named.push_back({key, io::to_array(values)});
    io::write_npz(folder.path(name), named, compress);
  }
  std::shared_ptr<const Dataset> open(const json& more = json::object(), uint64_t seed = 1) {
    json options{{"name", "folder"}, {"path", folder.path()}};
    options.update(more);
    return make_dataset(options, seed);
  }
  void expect_refused(const std::vector<std::string>& parts, const json& more = json::object(), int64_t frames = 2) {
    try {
      const auto dataset = open(more);
      for (uint64_t i = 0; i < dataset->size(Split::train); ++i) dataset->clip(Split::train, i, frames);
      ADD_FAILURE() << "no error; expected " << parts[0];
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::data) << text;
      for (const auto& part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' not in: " << text;
    }
  }
  static std::string text(const Dataset& dataset) {
    std::string all;
    for (const auto& line : dataset.summary()) all += line + "\n";
    return all;
  }

  ScratchFolder folder;
  const json all_train{{"test_fraction", 0.0}, {"valid_fraction", 0.0}};
};

}  // namespace convssm::data
