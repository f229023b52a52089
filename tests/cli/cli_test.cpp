// The program as a process: what a user types, sees and gets as exit code.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "convssm/base/version.h"
#include "program.h"

namespace convssm {
namespace {

TEST(Cli, Version) {
  const Outcome outcome = run("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, std::string("convssm ") + kVersion + "\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Cli, HelpShowsCommandsAndAnExample) {
  const Outcome outcome = run("--help");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"doctor", "--threads", "--version", "Example:"}) expect_contains(outcome.out, part);
  const Outcome doctor = run("doctor --help");
  EXPECT_EQ(doctor.code, 0);
  for (const char* part : {"--json", "Example:\n  convssm doctor"}) expect_contains(doctor.out, part);
}

TEST(Cli, NoArgumentsIsHelpWithTheExitCodeOfUsage) {
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  expect_contains(outcome.err, "doctor");
}

TEST(Cli, UnknownCommandNamesTheNearest) {
  const Outcome outcome = run("docter");
  EXPECT_EQ(outcome.code, 2);
  expect_contains(outcome.err, "error: unknown command 'docter'. Did you mean 'doctor'?");
  EXPECT_EQ(run("frobnicate").err.find("Did you mean"), std::string::npos);
  const auto meant = [](const std::string& arguments, const std::string& command) {
    const Outcome mistyped = run(arguments);
    EXPECT_EQ(mistyped.code, 2) << arguments;
    expect_contains(mistyped.err, "Did you mean '" + command + "'?");
  };
  meant("--threads 1 trian", "train");
  meant("eval runs/a", "evaluate");
  meant("inspect x.npy", "data inspect");
  meant("data --threads 1 mkae x.npy", "make");
}

TEST(Cli, WrongOptionsSayWhereToLook) {
  for (const char* arguments : {"doctor --jsn x", "doctor --json", "--threads 0 doctor", "--threads x doctor", "-z"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.err.substr(0, 7), "error: ") << outcome.err;
    expect_contains(outcome.err, "--help");
  }
  EXPECT_EQ(run("--threads 100000 doctor").code, 2);
}

TEST(Cli, DoctorPrintsEveryHeading) {
  const Outcome outcome = run("doctor");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"Software\n", "Matrix products\n", "Processor\n", "Memory\n", "Disk\n", "libtorch",
                           "convolutions", "GFLOP/s", "instructions", "threads", "flushed to zero", "allocator"}) {
    expect_contains(outcome.out, part);
  }
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
}

TEST(Cli, DoctorUsesTheThreadsAskedFor) {
  for (const char* arguments : {"--threads 1 doctor", "doctor --threads 1"}) {
    expect_contains(run(arguments).out, "1 in use");
  }
}

TEST(Cli, DoctorJsonParses) {
  const std::string path = scratch_path("doctor.json");
  ASSERT_EQ(run("doctor --json '" + path + "'").code, 0);
  const auto report = nlohmann::json::parse(read_all(path));
  std::remove(path.c_str());
  EXPECT_EQ(report.at("version"), kVersion);
  std::set<std::string> names;
  for (const auto& finding : report.at("findings")) {
    names.insert(finding.at("name").get<std::string>());
    EXPECT_EQ(finding.at("ok").get<bool>(), !finding.contains("advice"));
  }
  for (const char* name : {"library", "speed", "threads", "total", "page size"}) EXPECT_EQ(names.count(name), 1u);
}

TEST(Cli, DoctorJsonIntoAMissingFolderIsAnIoError) {
  const Outcome outcome = run("doctor --json /nonexistent/doctor.json");
  EXPECT_EQ(outcome.code, 4);
  expect_contains(outcome.err, "/nonexistent/doctor.json");
}

#if defined(__x86_64__)
// The measurements are found beside the program that was built, so a copy of the test does not do.
Outcome run_bench(const std::string& arguments) { return run(arguments, "env"); }

TEST(Cli, BenchWritesItsRows) {
  const std::string path = scratch_path("bench.json");
  const Outcome outcome = run_bench("bench --only memory --rounds 1 --json '" + path + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, "memory.fresh");
  const auto json = nlohmann::json::parse(read_all(path));
  std::remove(path.c_str());
  ASSERT_EQ(json.at("rows").size(), 4u);
  for (const char* key : {"name", "value", "unit", "reference", "ratio", "spread"}) {
    EXPECT_TRUE(json.at("rows")[0].contains(key)) << key;
  }
}

TEST(Cli, BenchTakesOptionsOfTheWholeProgramOnBothSidesOfItsName) {
  const std::string rows = " --only limit --rounds 0";  // not a positive number: nothing is measured
  for (const char* words : {"--threads 1 bench", "bench --threads 1"}) {
    const Outcome outcome = run_bench(words + rows);
    EXPECT_EQ(outcome.code, 2) << words;
    expect_contains(outcome.err, "--rounds");
    expect_contains(outcome.err, "convssm bench --help");
  }
  EXPECT_EQ(run_bench("--threads 0 bench").code, 2);
  EXPECT_EQ(run_bench("bench --threads 0").code, 2);
  expect_contains(run_bench("bench --help").out, "scan - ");
}

TEST(Cli, BenchOfAnUnknownGroupNamesTheKnownOnes) {
  const Outcome outcome = run_bench("bench --only scna");
  EXPECT_EQ(outcome.code, 2);
  expect_contains(outcome.err, "scan,layer,memory");
  expect_contains(outcome.err, "'scna'");
}

TEST(Cli, BenchOfAnUnknownModelNamesTheKnownOnes) {
  const Outcome model = run_bench("bench --only cost --models convs6");
  EXPECT_EQ(model.code, 2);
  expect_contains(model.err, "convs5,convssm_random");
}

TEST(Cli, BenchOfTooShortClipsSaysHowLongTheyMustBe) {
  const Outcome outcome = run_bench("bench --only complexity --longest 24");
  EXPECT_EQ(outcome.code, 2);
  expect_contains(outcome.err, "--longest must be at least 25, got 24");
}

TEST(Cli, DoctorMarksSlowKernels) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has nothing faster";
  const Outcome outcome = run("doctor", "OPENBLAS_CORETYPE=Prescott");
  if (outcome.out.find("OpenBLAS") == std::string::npos) GTEST_SKIP() << "another BLAS is in use";
  expect_contains(outcome.out, "! kernels");
  expect_contains(outcome.out, "-> export OPENBLAS_CORETYPE=");
}
#endif

}  // namespace
}  // namespace convssm
