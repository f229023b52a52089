// Forecasts of fields as a process: members of an ensemble, times, pixels that nobody knows, several clips.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "../data/field_files.h"
#include "convssm/io/grid_open.h"
#include "convssm/io/npy.h"
#include "program.h"

namespace convssm {
namespace {

using data::testing::hours_from;
using data::testing::t2m_at;
using data::testing::write_fields;

constexpr size_t kPlane = 8 * 10;

// `run` was trained on t2m of 60 hours with a gap, and has the checkpoints of steps 1, 2 and 3.
class CliForecasts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<ScratchFolder>();
    write("a.nc", {.hours = hours_from(0, 60), .missing = {0, 5}});
    const Outcome look = run("data inspect " + at("a.nc") + " 'variables=[t2m]' --config " + at("own.yaml"));
    ASSERT_EQ(look.code, 0) << look.err;
    train("run", "train.save_interval=1 train.steps=3");
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static void train(const std::string& name, const std::string& options) {
    const Outcome trained =
        run("train " + at("own.yaml") + " --run " + at(name) + " train.frames=6 train.sample_interval=0 " + options,
            "OMP_NUM_THREADS=1");
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void write(const std::string& name, data::testing::FieldsToWrite fields) {
    fields.height = 8, fields.width = 10;
    write_fields(folder_->path(name), fields);
  }
  static std::string at(const std::string& name) { return "'" + folder_->path(name) + "'"; }

  static void generate(const std::string& options, const std::string& out) {
    const Outcome outcome = run("generate " + at("run") + " " + options + " --force --out " + at(out));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  static std::vector<float> t2m(const std::string& name) {
    const auto file = io::open_grid(folder_->path(name));
    const io::Array array = file->read(file->variable("t2m"));
    return {array.values<float>().begin(), array.values<float>().end()};
  }
  static std::string times_of(const std::string& name) {
    return io::open_grid(folder_->path(name))->variable("time").attributes.at("units").text;
  }
  // Of [T,members,H,W], or [T,H,W] of one.
  static std::vector<float> member(const std::string& name, size_t number, size_t members) {
    std::vector<float> own;
    const std::vector<float> all = t2m(name);
    for (size_t i = 0; i < all.size(); ++i) {
      if (i / kPlane % members == number) own.push_back(all[i]);
    }
    return own;
  }
  static void expect_refused(const std::string& arguments, int code, const std::vector<std::string>& parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    for (const auto& part : parts) expect_contains(outcome.err, part);
  }

  static inline std::unique_ptr<ScratchFolder> folder_;
};

TEST_F(CliForecasts, CheckpointsAreMembers) {
  const std::string context = "--context " + at("a.nc") + " --context-frames=-4 --frames 3 ";
  const std::string also = " --also " + at("run@1") + " --also " + at("run@2");
  for (const char* out : {"members.nc", "members.zarr"}) {
    generate(context + also, out);
    const auto file = io::open_grid(folder_->path(out));
    EXPECT_EQ(file->variable("t2m").shape, (std::vector<int64_t>{3, 3, 8, 10}));
    EXPECT_EQ(file->variable("t2m").dimensions, (std::vector<std::string>{"time", "number", "lat", "lon"}));
  }
  generate(context, "newest.nc");
  generate(context + "--step 1", "first.nc");
  EXPECT_EQ(member("members.nc", 0, 3), t2m("newest.nc"));
  EXPECT_EQ(member("members.nc", 1, 3), t2m("first.nc")) << "a member is the forecast of its model alone";
  EXPECT_NE(t2m("newest.nc"), t2m("first.nc"));
  generate(context + also, "members.npy");
  EXPECT_TRUE(std::filesystem::exists(folder_->path("members-2.npy")));
  generate(context + also + " --samples 2 --perturb 0.3", "both.nc");
  EXPECT_EQ(io::open_grid(folder_->path("both.nc"))->variable("t2m").shape[1], 6);
  EXPECT_EQ(member("both.nc", 2, 6), t2m("first.nc"));
  EXPECT_NE(member("both.nc", 3, 6), t2m("first.nc"));

  const Outcome scored = run("evaluate " + at("run") + also + " --out " + at("scores") +
                             " evaluate.context=3 evaluate.horizons=[2] evaluate.futures=2 evaluate.perturb=0.2");
  ASSERT_EQ(scored.code, 0) << scored.err;
  const auto metrics = nlohmann::json::parse(read_all(folder_->path("scores/metrics.json")));
  EXPECT_EQ(metrics["protocol"]["futures"], 6);
  EXPECT_EQ(metrics["protocol"]["also"][0]["step"], 1);
  const auto& scores = metrics["skill"]["horizons"][0]["rows"][0]["variables"]["t2m"];
  EXPECT_TRUE(scores["crps_fair"].is_number() && scores["spread"].get<double>() > 0);
  EXPECT_EQ(scores["rank_histogram"].size(), 7u);
}

TEST_F(CliForecasts, OnlyModelsOfTheSameFramesAreMembers) {
  train("wide", "train.steps=1 data.low=200");
  const std::string generate = "generate " + at("run") + " --context " + at("a.nc") + " --frames 2 --out " + at("x.nc");
  expect_refused(generate + " --also " + at("wide"), 2, {"wide", "values", "200"});
  expect_refused(generate + " --also " + at("run@x"), 2, {"RUN@STEP"});
  expect_refused(generate + " --also " + at("run@1") + " --save-state " + at("s"), 2, {"a state is of one model"});
  expect_refused(generate + " --perturb 0.1", 2, {"--perturb", "--samples 2"});
  expect_refused("evaluate " + at("run") + " evaluate.perturb=0.1", 2, {"evaluate.futures"});
}

TEST_F(CliForecasts, ChannelsMayHaveNamesOfTheirOwn) {
  train("named", "train.steps=1 'data.channels=[temperature]'");
  const Outcome outcome =
      run("generate " + at("named") + " --context " + at("a.nc") + " --frames 2 --out " + at("own.nc"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(io::open_grid(folder_->path("own.nc"))->variable("temperature").attributes.at("units").text, "K");
}

TEST_F(CliForecasts, PerturbedFuturesAreMembers) {
  const std::string context = "--context " + at("a.nc") + " --context-frames=-4 --frames 3 ";
  generate(context + "--samples 3 --perturb 0.2", "perturbed.zarr");
  generate(context, "plain.nc");
  EXPECT_EQ(member("perturbed.zarr", 0, 3), t2m("plain.nc"));
  EXPECT_NE(member("perturbed.zarr", 1, 3), t2m("plain.nc"));
  EXPECT_NE(member("perturbed.zarr", 1, 3), member("perturbed.zarr", 2, 3));
}

TEST_F(CliForecasts, TimesGoOnAfterWhatAStateObserved) {
  write("new.nc", {.hours = hours_from(60, 6)});
  ASSERT_EQ(run("generate " + at("run") + " --context " + at("a.nc") + " --context-frames=-4 --frames 0 --save-state " +
                at("state"))
                .code,
            0);
  generate("--state " + at("state") + " --observe " + at("new.nc") + " --frames 7", "observed.nc");
  EXPECT_EQ(times_of("observed.nc"), "hours since 2019-03-03 18:00:00");
}

TEST_F(CliForecasts, ASavedStateKnowsItsPlaceAndTime) {
  write("blind.nc", {.hours = hours_from(60, 3), .missing = {0, 1, 2}});
  generate("--context " + at("blind.nc") + " --frames 3 --save-state " + at("blind"), "first.nc");
  generate("--state " + at("blind") + " --frames 2 --save-state " + at("later"), "rest.nc");
  EXPECT_EQ(times_of("rest.nc"), "hours since 2019-03-03 18:00:00");
  const auto file = io::open_grid(folder_->path("rest.nc"));
  EXPECT_EQ(file->read(file->variable("lat")).values<double>()[1], 57.75);
  EXPECT_TRUE(std::isnan(t2m("rest.nc")[0])) << "it was never measured";
  EXPECT_TRUE(std::isfinite(t2m("rest.nc")[1]));
  generate("--state " + at("later") + " --frames 1", "last.nc");
  EXPECT_EQ(times_of("last.nc"), "hours since 2019-03-03 20:00:00");
  write("seen.nc", {.hours = hours_from(63, 2), .missing = {0}});
  generate("--state " + at("blind") + " --observe " + at("seen.nc") + " --frames 1", "seen-1.nc");
  EXPECT_TRUE(std::isfinite(t2m("seen-1.nc")[0])) << "it was measured once";
  EXPECT_EQ(times_of("seen-1.nc"), "hours since 2019-03-03 17:00:00");
}

TEST_F(CliForecasts, TheContextIsWrittenAsItWasMeasured) {
  write("clouds.nc", {.hours = hours_from(0, 6), .missing = {4, 5}});
  const std::string rest = "--context " + at("clouds.nc") + " --with-context --frames 2";
  generate(rest, "with.nc");
  const std::vector<float> found = t2m("with.nc");
  EXPECT_NEAR(found[3 * kPlane], t2m_at(3, 0, 0), 1e-2);
  EXPECT_TRUE(std::isnan(found[5 * kPlane])) << found[5 * kPlane];
  EXPECT_TRUE(std::isfinite(found[6 * kPlane])) << "a forecast knows what was measured before";
  write("blind.nc", {.hours = hours_from(0, 3), .missing = {0, 1, 2}});
  generate("--context " + at("blind.nc") + " --frames 2", "blind.npy");
  const auto blind = io::read_npy(folder_->path("blind.npy"));
  EXPECT_TRUE(std::isnan(blind.values<float>()[0]));
  EXPECT_TRUE(std::isfinite(blind.values<float>()[1]));
  generate(rest, "with.gif");
}

TEST_F(CliForecasts, UnevenTimesAreKnownToModelsOfContinuousTime) {
  std::vector<double> hours = hours_from(0, 60);
  for (size_t i = 5; i < hours.size(); i += 5) hours[i] += 0.25;
  write("uneven.nc", {.hours = hours});
  train("uneven", "train.steps=1 data.dt=use data.path=" + at("uneven.nc"));
  const Outcome scored = run("evaluate " + at("uneven") + " evaluate.context=3 evaluate.horizons=[2]");
  ASSERT_EQ(scored.code, 0) << scored.err;
  const auto metrics = nlohmann::json::parse(read_all(folder_->path("uneven/metrics.json")));
  EXPECT_EQ(metrics["protocol"]["engine"], "eager");
  const std::string forecast = "generate " + at("uneven") + " --context " + at("uneven.nc") + " --frames 2 --out ";
  EXPECT_EQ(run(forecast + at("uneven-a.nc")).code, 0);
  EXPECT_EQ(run(forecast + at("uneven-b.nc") + " --engine eager").code, 0);
  EXPECT_EQ(t2m("uneven-a.nc"), t2m("uneven-b.nc"));
}

TEST_F(CliForecasts, AnExportedContextHasWhatWasMeasured) {
  std::vector<int64_t> all(60);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  write("land.nc", {.hours = hours_from(0, 60), .missing = all});
  train("land", "train.steps=1 data.path=" + at("land.nc"));
  ASSERT_EQ(run("export " + at("land") + " --out " + at("land-export")).code, 0);
  const auto context = io::read_npy(folder_->path("land-export/context.npy"));
  EXPECT_TRUE(std::isnan(context.values<float>()[0]));
  EXPECT_TRUE(std::isfinite(context.values<float>()[1]));

  ASSERT_EQ(run("data inspect " + at("a.nc") + " 'variables=[t2m]' 'forcings=[hour]' --config " + at("hour.yaml")).code,
            0);
  ASSERT_EQ(
      run("train " + at("hour.yaml") + " --run " + at("hour") + " train.steps=1 train.frames=6 train.sample_interval=0")
          .code,
      0);
  const Outcome exported = run("export " + at("hour") + " --out " + at("hour-export"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  expect_contains(exported.err + exported.out, "data.forcings");
  EXPECT_FALSE(std::filesystem::exists(folder_->path("hour-export/context.npz")));
  const std::string state = at("hour-state");
  ASSERT_EQ(run("generate " + at("hour") + " --context " + at("a.nc") + " --frames 0 --save-state " + state).code, 0);
  expect_refused("generate " + at("hour") + " --state " + state + " --frames 2 --out " + at("h.nc"), 3, {"--observe"});
}

// What is forecast and never seen need not be in the file that a forecast goes on from.
TEST_F(CliForecasts, DiagnosticChannelsNeedNotBeThere) {
  const Outcome look =
      run("data inspect " + at("a.nc") +
          " 'variables=[t2m, u@850]' 'diagnostic=[u@850]' 'low=[200,-100]' 'high=[400,100]' --config " + at("d.yaml"));
  ASSERT_EQ(look.code, 0) << look.err;
  ASSERT_EQ(
      run("train " + at("d.yaml") + " --run " + at("d") + " train.steps=1 train.frames=6 train.sample_interval=0").code,
      0);
  ASSERT_EQ(run("data convert " + at("a.nc") + " " + at("t2m.nc") + " 'variables=[t2m]'").code, 0);
  const auto forecast = [](const std::string& from, const std::string& out) {
    const Outcome outcome =
        run("generate " + at("d") + " --context " + at(from) + " --frames 2 --force --out " + at(out));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  };
  forecast("a.nc", "whole.nc");
  forecast("t2m.nc", "part.nc");
  EXPECT_EQ(t2m("whole.nc"), t2m("part.nc"));
  const auto file = io::open_grid(folder_->path("part.nc"));
  EXPECT_TRUE(std::isfinite(file->read(file->variable("u@850")).values<float>()[0]));
}

TEST_F(CliForecasts, ClipsHaveTimesAndGapsOfTheirOwn) {
  std::filesystem::create_directory(folder_->path("clips"));
  write("clips/a.nc", {.hours = hours_from(0, 10)});
  write("clips/b.nc", {.hours = hours_from(0, 12), .missing = {7, 8, 9, 10, 11}});
  generate("--context " + at("clips") + " --context-frames=-5 --frames 2", "clip.nc");
  EXPECT_EQ(times_of("clip-0.nc"), "hours since 2019-03-01 10:00:00");
  EXPECT_EQ(times_of("clip-1.nc"), "hours since 2019-03-01 12:00:00");
  EXPECT_TRUE(std::isfinite(t2m("clip-0.nc")[0]));
  EXPECT_TRUE(std::isnan(t2m("clip-1.nc")[0]));
}

}  // namespace
}  // namespace convssm
