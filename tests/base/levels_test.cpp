// The levels of the source tree, as a test: a folder of convssm/ includes only itself and folders before it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "scratch_folder.h"

namespace convssm {
namespace {

namespace fs = std::filesystem;

// Equal numbers know nothing of each other.
const std::map<std::string, int> kLevels = {
    {"base", 0},      {"io", 1},   {"ops", 2},     {"ssm", 3},    {"nn", 4},        {"cores", 5},
    {"worlds", 6},    {"data", 7}, {"metrics", 8}, {"models", 9}, {"generate", 10}, {"train", 11},
    {"evaluate", 11}, {"run", 12}, {"report", 13}, {"serve", 13}, {"cli", 14},
};

struct Include {
  std::string path;
  bool quoted;
};

bool starts_with(const std::string& text, const std::string& head) { return text.compare(0, head.size(), head) == 0; }

bool ends_with(const std::string& text, const std::string& tail) {
  return text.size() >= tail.size() && text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

// The include of a line, however it is spaced.
std::optional<Include> parse_include(std::string line) {
  line.erase(std::remove_if(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t'; }), line.end());
  if (!starts_with(line, "#include") || line.size() < 10) return std::nullopt;
  const char open = line[8];
  if (open != '"' && open != '<') return std::nullopt;
  const size_t end = line.find(open == '"' ? '"' : '>', 9);
  return Include{line.substr(9, end == std::string::npos ? end : end - 9), open == '"'};
}

// "convssm/ops/scan.h" -> "ops"; "" if the path is not of that form.
std::string level_of(const std::string& path) {
  const size_t begin = std::string("convssm/").size(), end = path.find('/', begin);
  if (!starts_with(path, "convssm/") || end == std::string::npos) return "";
  return path.substr(begin, end - begin);
}

bool is_libtorch(const std::string& path) {
  return starts_with(path, "torch/") || starts_with(path, "ATen/") || starts_with(path, "c10/");
}

// base/, io/, worlds/ and report/ compile without libtorch, but for the bridge to tensors.
bool is_plain(const std::string& file) {
  const std::string level = level_of(file);
  return level == "base" || level == "worlds" || level == "report" ||
         (level == "io" && !starts_with(file, "convssm/io/tensor."));
}

std::string problem_of_include(const std::string& file, const Include& include) {
  if (is_plain(file) && is_libtorch(include.path)) return level_of(file) + "/ does not know libtorch";
  const bool own = starts_with(include.path, "convssm/");
  if (!own) return include.quoted ? "write the full path, \"convssm/level/file.h\"" : "";
  if (!include.quoted) return "write our own headers in quotes";
  if (!ends_with(include.path, ".h")) return "only headers are included";
  if (is_plain(file) && include.path == "convssm/io/tensor.h") return level_of(file) + "/ does not know libtorch";
  const std::string from = level_of(file), to = level_of(include.path);
  if (kLevels.count(to) == 0) return fmt::format("'{}' is not a level", to);
  if (from == to || kLevels.at(to) < kLevels.at(from)) return "";
  return fmt::format("{}/ must not know {}/", from, to);
}

// What is wrong with a file, one line each. `file` is its path from the root of the project.
std::vector<std::string> problems_of(const std::string& file, const std::string& content) {
  if (kLevels.count(level_of(file)) == 0) return {file + ": its folder is not a level"};
  std::vector<std::string> problems;
  // Highway reads an -inl.h once per instruction set, so its guard is a toggle.
  const std::string guard = ends_with(file, "-inl.h") ? "HWY_TARGET_TOGGLE" : "#pragma once";
  bool guarded = false;
  int number = 0;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    ++number;
    guarded = guarded || (line[0] == '#' && line.find(guard) != std::string::npos);
    const auto include = parse_include(line);
    const std::string problem = include ? problem_of_include(file, *include) : "";
    if (!problem.empty()) problems.push_back(fmt::format("{}:{}: {}: {}", file, number, include->path, problem));
  }
  if (ends_with(file, ".h") && !guarded) problems.push_back(file + ": no " + guard);
  return problems;
}

TEST(Levels, EveryFileIncludesOnlyWhatItMayKnow) {
  const fs::path root = CONVSSM_SOURCE_DIR;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "convssm")) {
    const std::string name = fs::relative(entry.path(), root).generic_string();
    if (!entry.is_regular_file() || (!ends_with(name, ".h") && !ends_with(name, ".cpp"))) continue;
    ++files;
    for (const std::string& problem : problems_of(name, read_text(entry.path().string()))) ADD_FAILURE() << problem;
  }
  EXPECT_GT(files, 10);
}

TEST(Levels, TheCheckerAcceptsWhatIsAllowed) {
  const std::string header = "#pragma once\n#include <vector>\n#include <torch/torch.h>\n";
  EXPECT_TRUE(problems_of("convssm/ops/scan.h", header + "#include \"convssm/ops/check.h\"\n").empty());
  EXPECT_TRUE(problems_of("convssm/ops/scan.h", header + "#include \"convssm/base/error.h\"\n").empty());
  EXPECT_TRUE(problems_of("convssm/io/tensor.h", header).empty());
  EXPECT_TRUE(problems_of("convssm/cli/train.cpp", "#include \"convssm/metrics/psnr.h\"\n").empty());
}

TEST(Levels, TheCheckerFindsEachViolation) {
  const auto finds = [](const std::string& file, const std::string& line, const std::string& problem) {
    const auto found = problems_of(file, line);
    ASSERT_EQ(found.size(), 1u) << line;
    EXPECT_NE(found[0].find(problem), std::string::npos) << found[0];
    EXPECT_EQ(found[0].find(file), 0u) << found[0];
  };
  finds("convssm/ops/scan.cpp", "#include \"convssm/cores/convs5.h\"", "ops/ must not know cores/");
  finds("convssm/base/log.cpp", "  #  include \"convssm/io/png.h\"", "base/ must not know io/");
  finds("convssm/train/loop.cpp", "#include \"convssm/cli/rows.h\"", "train/ must not know cli/");
  finds("convssm/data/clips.cpp", "#include \"convssm/metrics/psnr.h\"", "data/ must not know metrics/");
  finds("convssm/ops/scan.cpp", "#include \"convssm/misc/x.h\"", "'misc' is not a level");
  finds("convssm/ops/scan.cpp", "#include \"convssm/x.h\"", "'' is not a level");
  finds("convssm/misc/x.cpp", "", "its folder is not a level");
  finds("convssm/x.cpp", "", "its folder is not a level");
  finds("convssm/io/npy.cpp", "#include <torch/torch.h>", "does not know libtorch");
  finds("convssm/base/log.cpp", "#include <c10/util/Exception.h>", "does not know libtorch");
  finds("convssm/base/log.cpp", "#include \"ATen/ATen.h\"", "does not know libtorch");
  finds("convssm/io/npy.cpp", "#include \"convssm/io/tensor.h\"", "does not know libtorch");
  finds("convssm/ops/scan.cpp", "#include \"check.h\"", "full path");
  finds("convssm/ops/scan.cpp", "#include <convssm/ops/check.h>", "in quotes");
  finds("convssm/ops/scan.cpp", "#include \"convssm/ops/check.cpp\"", "only headers");
  finds("convssm/ops/scan.h", "#include <vector>\n", "no #pragma once");
  finds("convssm/ops/scan.h", "// #pragma once\n", "no #pragma once");
  finds("convssm/ops/scan-inl.h", "#pragma once\n", "no HWY_TARGET_TOGGLE");
}

}  // namespace
}  // namespace convssm
