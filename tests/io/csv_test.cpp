// Tables of numbers: what is read, and what is said about each kind of damage.
#include "convssm/io/csv.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../base/scratch_folder.h"
#include "convssm/base/file_memory.h"
#include "malformed.h"

namespace convssm::io {
namespace {

TEST(Csv, ReadsTablesAsPeopleWriteThem) {
  const std::vector<double> six{1, 2, 3, 4, -5, 6};
  for (const char* text : {"1,2\n3,4\n-5,6\n", "1,2\n3,4\n-5,6", "1;2\r\n3;4\r\n-5;6\r\n", "1\t2\n3\t4\n-5\t6\n",
                           "\xef\xbb\xbf 1 , +2\n\n# a remark, with a comma\n3,4\n-5,6\n\n"}) {
    const CsvTable table = parse_csv(text, "t");
    EXPECT_EQ(table.rows, 3) << text;
    EXPECT_EQ(table.width, 2) << text;
    EXPECT_EQ(table.values, six) << text;
    EXPECT_EQ(table.whole, (std::vector<bool>{true, true})) << text;
    EXPECT_TRUE(table.names.empty()) << text;
  }
  const CsvTable named = parse_csv("frame,\"action\"\n0,3\n1,2.5\n", "t");
  EXPECT_EQ(named.names, (std::vector<std::string>{"frame", "action"}));
  EXPECT_EQ(named.values, (std::vector<double>{0, 3, 1, 2.5}));
  EXPECT_EQ(named.whole, (std::vector<bool>{true, false}));
  const CsvTable one = parse_csv("7\n8\n", "t");
  EXPECT_EQ(one.width, 1);
  EXPECT_EQ(one.rows, 2);
  EXPECT_TRUE(std::isnan(parse_csv("nan\n1\n", "t").values[0]));
}

TEST(Csv, DamageIsToldWithItsLine) {
  const std::vector<Malformed> files{
      {"a row that is too short", "a,b\n1,2\n3\n", "line 3: expected 2 numbers, got 1"},
      {"a row that is too long", "1,2\n3,4,5\n", "line 2: expected 2 numbers, got 3"},
      {"a cell that is no number", "1,2\n3,x\n", "line 2: column 2: 'x' is not a number"},
      {"an empty cell", "1,2\n3,\n", "line 2: column 2: '' is not a number"},
      {"a number with a tail", "1\n2\n3z\n", "line 3: column 1: '3z' is not a number"},
      {"no rows", "a,b\n", "without any row"},
      {"nothing", "", "without any row"},
      {"binary", std::string("\x89HDF\r\n\x1a\n\0\0", 10), "neither a number nor a name"},
      {"a name that is missing", "a,,b\n1,2,3\n", "line 1: a column without a name"},
      {"too many columns", std::string(1 << 17, ','), "at most 65536 columns"},
  };
  const ReadAll read_all = [](const std::shared_ptr<const Source>& source) {
    std::string text(source->size(), '\0');
    source->read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    parse_csv(text, source->name());
  };
  for (const Malformed& file : files) {
    SCOPED_TRACE(file.kind);
    expect_error(ErrorKind::data, file.reason, [&] { read_all(memory_source("bad.file", as_bytes(file.bytes))); });
  }
  expect_damage_survived("a,b\n1,2.5\n-3,4e2\n", read_all);
}

TEST(Csv, MemoryIsLimited) {
  const ScratchFolder folder;
  folder.write("a.csv", "1,2\n3,4\n");
  EXPECT_EQ(read_csv(folder.path("a.csv")).rows, 2);
  set_file_memory_limit(16);
  expect_error(ErrorKind::data, "--file-memory", [&] { read_csv(folder.path("a.csv")); });
  set_file_memory_limit(default_file_memory);
  expect_error(ErrorKind::io, "none.csv", [&] { read_csv(folder.path("none.csv")); });
}

}  // namespace
}  // namespace convssm::io
