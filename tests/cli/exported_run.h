// For tests that spoil files: a training of the tiny model, in run/, and its export, in small/, once for all of a suite.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../base/scratch_folder.h"
#include "program.h"
#include "tiny_run.h"

namespace convssm {

class ExportedRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<ScratchFolder>();
    write_text(path("tiny.yaml"), tiny_config());
    ASSERT_EQ(run("train " + path("tiny.yaml") + " --run " + path("run")).code, 0);
    const Outcome exported = run("export " + path("run") + " --out " + path("small"));
    ASSERT_EQ(exported.code, 0) << exported.err;
  }
  static void TearDownTestSuite() { scratch_.reset(); }
  static std::string path(const std::string& name) { return scratch_->path(name); }

  static void expect_refused(const std::string& arguments, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    for (const auto& part : parts) expect_contains(outcome.err, part);
  }

  static inline std::unique_ptr<ScratchFolder> scratch_;
};

}  // namespace convssm
