// Hostile JSON: nesting that would overflow the stack, length that would fill the memory; and that nothing parses JSON
// beside base/json.
#include "convssm/base/json.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "convssm/base/error.h"
#include "convssm/base/file_memory.h"
#include "scratch_folder.h"

namespace convssm {
namespace {

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "some.json");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
}

TEST(Json, ValuesAreRead) {
  EXPECT_EQ(parse_json(R"({"a": [1, "]}\"[{", 2.5]})", "x")["a"][1], "]}\"[{");
  EXPECT_EQ(try_parse_json("[1"), std::nullopt);
  EXPECT_EQ(try_parse_json("null"), nlohmann::json());
  const ScratchFolder folder;
  folder.write("a.json", "[1, 2]");
  EXPECT_EQ(try_read_json(folder.path("a.json")), nlohmann::json({1, 2}));
  EXPECT_EQ(try_read_json(folder.path("missing.json")), std::nullopt);
}

TEST(Json, DepthHasALimit) {
  EXPECT_EQ(error_of(nested(max_json_depth)), "");
  EXPECT_EQ(error_of("[\"" + std::string(500, '[') + "\"]"), "");  // in a text they are characters
  for (const std::string& text : {nested(max_json_depth + 1), nested(1'000'000), std::string(1'000'000, '['),
                                  "{\"a\":" + nested(max_json_depth) + "}"}) {
    const std::string error = error_of(text);
    for (const char* part : {"some.json", "100 levels"}) EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

TEST(Json, MistakesAreToldShortly) {
  const std::string error = error_of("[\"" + std::string(10000, 'x'));
  EXPECT_NE(error.find("some.json: not valid JSON"), std::string::npos) << error;
  EXPECT_LT(error.size(), 400u);
}

TEST(Json, LengthHasALimit) {
  set_file_memory_limit(4800);
  EXPECT_EQ(error_of(std::string(98, ' ') + "[]"), "");
  const std::string error = error_of(std::string(99, ' ') + "[]");
  set_file_memory_limit(default_file_memory);
  for (const char* part : {"some.json", "4.7 KiB", "--file-memory"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

TEST(Json, IsParsedInOnePlace) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CONVSSM_SOURCE_DIR "/convssm")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == "json.cpp") continue;
    const std::string text = read_text(entry.path().string());
    for (const char* call : {"json::parse(", "Json::parse(", "sax_parse(", "json::accept("}) {
      if (name == "safetensors_header.cpp" && std::string(call) == "sax_parse(") continue;  // its own events
      EXPECT_EQ(text.find(call), std::string::npos) << entry.path();
    }
  }
}

}  // namespace
}  // namespace convssm
