// What a new user's first hour stumbled over.
#include <gtest/gtest.h>

#include <filesystem>

#include "convssm/io/npy.h"
#include "convssm/io/npz.h"
#include "exported_run.h"

namespace convssm {
namespace {

using FirstHour = ExportedRun;

TEST_F(FirstHour, ARunFolderAloneSaysHowToGoOn) {
  expect_refused("train --run " + path("run"), 2, {"holds a run", "--resume"});
  const Outcome again = run("train --run " + path("run") + " --resume");
  EXPECT_EQ(again.code, 0) << again.err;
  expect_contains(again.err, "the run is finished: step 12 of 12; train.steps=N goes on");
}

TEST_F(FirstHour, AForecastIsNotOverwrittenByItsState) {
  const std::string context = "generate " + path("small") + " --context " + path("small/context.npy");
  expect_refused(context + " --out " + path("a.npy") + " --save-state " + path("a.npy"), 2, {"the same file"});
  expect_refused(context + " --context-frames 0 --out " + path("a.npy"), 2, {"0 frames are no context"});
  expect_refused("doctor --threads 0", 2, {"expected a whole number above 0, got 0"});
}

TEST_F(FirstHour, FieldsBeyondTheirRangeAreForecast) {
  std::vector<float> values(40 * 12 * 12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 250 + static_cast<float>(i % 97) / 2;
  io::write_npy(path("field.npy"), io::make_array({40, 12, 12}, values));
  ASSERT_EQ(run("data inspect " + path("field.npy") + " --config " + path("field.yaml")).code, 0);
  const std::string config = read_all(path("field.yaml"));
  expect_contains(config, "clamp: true");
  EXPECT_EQ(config.find("warmup"), std::string::npos) << config;  // or fewer steps would need another one
  for (const char* clamp : {"true", "false"}) {
    const Outcome trained = run("train " + path("field.yaml") + " train.steps=2 train.batch=1 data.clamp=" + clamp +
                                " --run " + path(std::string("field-") + clamp));
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  values[5] = 400;
  io::write_npy(path("hot.npy"), io::make_array({40, 12, 12}, values));
  const std::string rest = " --context " + path("hot.npy") + " --frames 2 --force --out " + path("f.npy");
  EXPECT_EQ(run("generate " + path("field-true") + rest).code, 0);
  expect_refused("generate " + path("field-false") + rest, 3, {"400", "--clamp"});
  EXPECT_EQ(run("generate " + path("field-false") + rest + " --clamp").code, 0);
}

TEST_F(FirstHour, TextBesideTheClipsDoesNotMatter) {
  io::write_npz(path("text.npz"), std::vector<io::NamedArray>{{"data", io::Array(io::DType::u8, {30, 12, 12})},
                                                              {"labels", io::Array(io::DType::u8, {2})}});
  std::string bytes = read_all(path("text.npz"));
  size_t at = bytes.rfind("'|u1'");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "'|S1'");  // the checksum of the array is not asked for
  write_text(path("text.npz"), bytes);
  const Outcome seen = run("data inspect " + path("text.npz"));
  EXPECT_EQ(seen.code, 0) << seen.err;
  expect_contains(seen.out, "30 frames");
}

TEST_F(FirstHour, PathsAreToldWithTheFolderTheyAreLookedForIn) {
  expect_refused("train " + path("tiny.yaml") + " 'data={name: folder, path: nowhere}' --run " + path("n"), 4,
                 {"'nowhere' in the current folder, " + std::filesystem::current_path().string(), "data.path"});
}

TEST_F(FirstHour, ManyChannelsAreSpokenOf) {
  io::write_npy(path("many.npy"), io::Array(io::DType::u8, {20, 7, 12, 12}));
  expect_contains(run("data inspect " + path("many.npy")).out, "set layout TCHW");
}

}  // namespace
}  // namespace convssm
