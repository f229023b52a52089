// A second library by the name of libtorch's, as a plug-in of a program might bring it.
#include "convssm/ops/one_libtorch.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <filesystem>
#include <string>

#include "convssm/base/error.h"
#include "convssm/ops/runtime.h"
#include "tests/base/scratch_folder.h"

namespace convssm::ops {
namespace {

// Any small library, under that name.
std::string small_library() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&omp_get_max_threads), &info);
  return info.dli_fname;
}

TEST(OneLibtorch, IsWhatATestHas) {
  EXPECT_EQ(loaded_libtorch().size(), 1u);
  EXPECT_NO_THROW(require_one_libtorch());
}

TEST(OneLibtorch, ASecondOneIsAnErrorThatNamesBoth) {
  const ScratchFolder folder;
  const std::string second = folder.path("libtorch_cpu.so");
  std::filesystem::copy_file(small_library(), second);
  void* handle = dlopen(second.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  try {
    start_runtime();
    ADD_FAILURE() << "two libtorch were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    const std::string text = error.what();
    EXPECT_NE(text.find(second), std::string::npos) << text;
    EXPECT_NE(text.find("2 libtorch"), std::string::npos) << text;
    EXPECT_NE(text.find("--preset"), std::string::npos) << text;
  }
  dlclose(handle);
  EXPECT_NO_THROW(require_one_libtorch());
}

}  // namespace
}  // namespace convssm::ops
