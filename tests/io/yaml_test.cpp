#include "convssm/io/yaml.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "../base/scratch_folder.h"
#include "convssm/base/random.h"
#include "malformed.h"

namespace convssm::io {
namespace {

using nlohmann::json;

json parse(const std::string& text) { return parse_yaml(text, "test.yaml"); }

json value_of(const std::string& scalar) { return parse("a: " + scalar).at("a"); }

TEST(Yaml, MapsListsAndScalars) {
  const json expected = json::parse(R"({"train": {"lr": 1e-3, "steps": 100, "names": ["a b", "c"]},
                                        "list": [1, [2, 3], {"x": null, "y": true}], "text": "two\nlines\n"})");
  EXPECT_EQ(parse(R"(# a comment
train:
  lr: 1e-3   # and another
  steps: 100
  names: [a b, 'c']
list:
- 1
- [2, 3]
- x: ~
  y: true
text: |
  two
  lines
)"),
            expected);
}

TEST(Yaml, EmptyIsAnEmptyObject) {
  for (const char* text : {"", "\n\n", "# nothing here\n"}) EXPECT_EQ(parse(text), json::object()) << text;
  EXPECT_EQ(parse("null"), json(nullptr));
}

TEST(Yaml, PlainScalarsFollowTheCoreSchema) {
  for (const char* text : {"null", "Null", "NULL", "~", ""}) EXPECT_TRUE(value_of(text).is_null()) << text;
  for (const char* text : {"true", "True", "TRUE"}) EXPECT_EQ(value_of(text), json(true)) << text;
  for (const char* text : {"false", "False", "FALSE"}) EXPECT_EQ(value_of(text), json(false)) << text;
  for (const char* text :
       {"yes",   "no",    "on",   "off", "Yes", "y",   "n",   "tRUE", "nulL", "12:30:45", "2001-12-14",
        "1_000", "0x",    "0xg1", "0o8", "1e",  "1e+", ".",   "-",    "+",    "-.",       ".e3",
        "1.2.3", "1e3.5", "--1",  "nan", "inf", "=",   "1 2", "0b1",  "e5",   "infinity"}) {
    if (std::string(text) == "-") continue;  // a list
    EXPECT_EQ(value_of(text), json(text));
  }
}

TEST(Yaml, Integers) {
  EXPECT_TRUE(value_of("7").is_number_unsigned());
  EXPECT_TRUE(value_of("-7").is_number_integer());
  EXPECT_EQ(value_of("-7"), json(-7));
  EXPECT_EQ(value_of("+7"), json(7));
  EXPECT_EQ(value_of("007"), json(7));
  EXPECT_EQ(value_of("0x1F"), json(31));
  EXPECT_EQ(value_of("0o17"), json(15));
  EXPECT_EQ(value_of("18446744073709551615").get<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(value_of("-9223372036854775808").get<int64_t>(), std::numeric_limits<int64_t>::min());
  for (const char* text : {"18446744073709551616", "-9223372036854775809", "0x1ffffffffffffffff"}) {
    expect_error(ErrorKind::data, "test.yaml: line 1, column 4: the number", [&] { value_of(text); });
  }
}

TEST(Yaml, Floats) {
  for (const auto& [text, value] : {std::pair{"1e-3", 1e-3},
                                    {".5", .5},
                                    {"-.5", -.5},
                                    {"1e5", 1e5},
                                    {"1E+5", 1e5},
                                    {"5.", 5.},
                                    {"+1.5", 1.5},
                                    {"0.1", 0.1},
                                    {"-0.0", -0.0},
                                    {"5e-324", 5e-324}}) {
    const json found = value_of(text);
    ASSERT_TRUE(found.is_number_float()) << text;
    EXPECT_EQ(std::bit_cast<uint64_t>(found.get<double>()), std::bit_cast<uint64_t>(value)) << text;
  }
  EXPECT_EQ(value_of("-.inf").get<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value_of(".nan").get<double>()));
  expect_error(ErrorKind::data, "does not fit a double", [] { value_of("1e999"); });
}

TEST(Yaml, QuotedScalarsAreText) {
  for (const char* text : {"true", "null", "1", "1e-3", "~", ""}) {
    EXPECT_EQ(value_of("'" + std::string(text) + "'"), json(text));
    EXPECT_EQ(value_of("\"" + std::string(text) + "\""), json(text));
  }
  EXPECT_EQ(value_of("!!str 12"), json("12"));
  EXPECT_EQ(parse("1: a\ntrue: b"), (json{{"1", "a"}, {"true", "b"}}));
}

TEST(Yaml, AliasesRepeatTheirAnchor) {
  EXPECT_EQ(parse("a: &x {b: [1, 2]}\nc: *x\nd: [*x]"),
            json::parse(R"({"a": {"b": [1, 2]}, "c": {"b": [1, 2]}, "d": [{"b": [1, 2]}]})"));
  expect_error(ErrorKind::data, "alias stands inside", [] { parse("a: &x [*x]"); });
}

TEST(Yaml, ErrorsSayWhere) {
  const auto refused = [](const std::string& text, const std::string& place, const std::string& reason) {
    expect_error(ErrorKind::data, "test.yaml: " + place, [&] { parse(text); });
    expect_error(ErrorKind::data, reason, [&] { parse(text); });
  };
  refused("a: 1\nb: 2\na: 3", "line 3, column 1: ", "the key 'a' is here for the second time");
  refused("a: {b: 1, 'b': 2}", "line 1, column 11: ", "the key 'b' is here for the second time");
  refused("a:\n\tb: 1", "line 2, ", "indented by a tab");
  refused("a: [1, 2\nb: 3", "line ", "'b: 3'");
  refused("a: b: c", "line 1, ", "illegal map value");
  refused("a: 'open", "line 1, ", "EOF");
  refused("a: *nothing", "line 1, ", "nothing");
  refused("a: 1\n---\nb: 2", "line 2, ", "second document");
  refused("[1]: 2", "line 1, ", "a key must be a text");
  refused("~: 2", "line 1, ", "a key must be a text");
  refused("a: !thing 2", "line 1, column 4", "tag '!thing' is not supported");
  refused("a: !!int 2", "line 1, column 4", "is not supported");
  refused("a: 1\nb: \x01", "line 2, column 4", "control character \\x01");
  refused(std::string("a: \0b", 5), "line 1, column 4", "control character \\x00");
  refused("a: \xff", "not UTF-8", "not UTF-8");
  refused(
      "\xff\xfe"
      "a",
      "not UTF-8", "not UTF-8");
}

TEST(Yaml, BombsAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  expect_error(ErrorKind::data, "too many values", [&] { parse(bomb); });
  std::string fat = "a: &a " + std::string(1 << 20, 'x') + "\nb: [*a";
  for (int i = 0; i < 1000; ++i) fat += ", *a";
  expect_error(ErrorKind::data, "too many values", [&] { parse(fat + "]"); });
  for (const char* open : {"[", "{a: ", "- "}) {
    for (const int depth : {101, 3000}) {
      std::string deep;
      for (int i = 0; i < depth; ++i) deep += open;
      EXPECT_THROW(parse(deep), Error) << open << depth;
    }
  }
  const std::string nested = "a: &a " + std::string(60, '[') + std::string(60, ']') + "\nb: ";
  EXPECT_NO_THROW(parse(nested + "*a"));
  expect_error(ErrorKind::data, "levels of nesting",
               [&] { parse(nested + std::string(60, '[') + "*a" + std::string(60, ']')); });
}

TEST(Yaml, EveryPrefixIsReadOrRefused) {
  const std::string text = "a: &x {b: [1, 'two', \"\\u00e4\"]}\nc:\n  - *x\n  - |\n    text\n  - ? key\n    : value\n";
  for (size_t length = 0; length <= text.size(); ++length) {
    try {
      parse(text.substr(0, length));
    } catch (const Error&) {
    }
  }
}

TEST(Yaml, ReadsFiles) {
  const ScratchFolder folder;
  folder.write("a.yaml", "x: 1\n");
  EXPECT_EQ(read_yaml(folder.path("a.yaml")), (json{{"x", 1}}));
  folder.write("b.yaml", "x: [");
  expect_error(ErrorKind::data, folder.path("b.yaml") + ": line 1", [&] { read_yaml(folder.path("b.yaml")); });
  expect_error(ErrorKind::io, "No such file", [&] { read_yaml(folder.path("c.yaml")); });
}

void expect_round_trip(const json& value) {
  const std::string text = to_yaml(value);
  const json back = parse(text);
  EXPECT_EQ(back, value) << text;
  EXPECT_EQ(back.dump(), value.dump()) << text;  // == takes 1 for 1.0
}

TEST(Yaml, WritesReadableText) {
  const json value = json::parse(R"({"model": {"core": {"kind": "convs5", "features": 64}, "depths": [32, 64]},
    "train": {"lr": 1e-3, "betas": [0.9, 0.999], "steps": 100, "warmup": 10, "clip": null},
    "layers": [{"a": 1}, [[1, 2], {"x": []}]], "note": "a: b", "empty": {}, "tiny": 1e-8})");
  EXPECT_EQ(to_yaml(value), R"(empty: {}
layers:
  - {a: 1}
  -
    - [1, 2]
    - x: []
model:
  core: {features: 64, kind: convs5}
  depths: [32, 64]
note: "a: b"
tiny: 1.0e-08
train:
  betas: [0.9, 0.999]
  clip: null
  lr: 0.001
  steps: 100
  warmup: 10
)");
  expect_round_trip(value);
}

TEST(Yaml, TextSurvives) {
  for (const std::string text : {"",
                                 " ",
                                 "a",
                                 "a b",
                                 " a",
                                 "a ",
                                 "true",
                                 "no",
                                 "null",
                                 "~",
                                 "1",
                                 "-1",
                                 "1e-3",
                                 ".5",
                                 "0x1",
                                 ".inf",
                                 ".nan",
                                 "-",
                                 "- a",
                                 "a: b",
                                 "a:",
                                 "a #b",
                                 "#",
                                 "?",
                                 "? a",
                                 "!x",
                                 "&x",
                                 "*x",
                                 "%x",
                                 "@x",
                                 "`x",
                                 "|",
                                 ">",
                                 "'",
                                 "\"",
                                 "it's",
                                 "\\",
                                 "a\\nb",
                                 "a\nb",
                                 "\n",
                                 "a\r\nb",
                                 "\t",
                                 "\ttab",
                                 "---",
                                 "...",
                                 "<<",
                                 "=",
                                 "[",
                                 "]",
                                 "{",
                                 "}",
                                 ",",
                                 "a,b",
                                 "2001-01-01",
                                 "ä",
                                 "日本語",
                                 "😀",
                                 "\x7f",
                                 "\x01\x1f",
                                 "\u0085",
                                 "\u00a0",
                                 "\u2028",
                                 "\u2029",
                                 "\ufeff",
                                 "\ufeffa",
                                 "/path/to.npy",
                                 "https://x.y/z?a=b",
                                 "C:\\x",
                                 "y",
                                 "N"}) {
    SCOPED_TRACE(text);
    expect_round_trip(text);
    expect_round_trip({{text, text}});
    expect_round_trip({{"list", {text, text}}, {"deep", {{text, {text}}}}});
  }
  EXPECT_EQ(to_yaml({"\x7f", "a\u2028ä", "ä"}), "[\"\\x7f\", \"a\\u2028\\xe4\", \"ä\"]\n");
  expect_round_trip(std::string("\0a", 2));
  expect_round_trip(std::string(5000, 'x'));
  expect_round_trip({{std::string(900, 'x'), 1}});
  expect_error(ErrorKind::usage, "not UTF-8", [] { to_yaml("\xff"); });
  expect_error(ErrorKind::usage, "longer than YAML allows", [] { to_yaml({{std::string(2000, 'x'), 1}}); });
}

TEST(Yaml, NumbersSurviveBitForBit) {
  Stream stream(1, "yaml");
  json list = json::array();
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(stream.next());
    if (std::isfinite(value)) list.push_back(value);
    list.push_back(std::round(stream.normal() * 1000) / 1000);
  }
  for (const double value : {0.0, -0.0, 1.0, 1e15, 1e16, 1e17, 1e22, 123456789.0, 5e-324, 1e-5}) list.push_back(value);
  const json back = parse(to_yaml(list));
  ASSERT_EQ(back.size(), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    ASSERT_TRUE(back[i].is_number_float()) << list[i];
    EXPECT_EQ(std::bit_cast<uint64_t>(back[i].get<double>()), std::bit_cast<uint64_t>(list[i].get<double>()));
  }
  EXPECT_TRUE(std::isnan(parse(to_yaml({std::nan("")}))[0].get<double>()));
  expect_round_trip({std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max(), 0, -1, true, nullptr});
  expect_round_trip({{"inf", INFINITY}, {"minus", -INFINITY}});
}

TEST(Yaml, StructuresSurvive) {
  for (const char* text : {"null", "3", "[]", "{}", "[[]]", "[{}]", "{\"a\": {}}", "{\"a\": [[], {}]}", "[[[1]]]",
                           "[[[[1, [2]]]], {\"a\": {\"b\": {\"c\": [1]}}}]"}) {
    expect_round_trip(json::parse(text));
  }
  json long_list = json::array();
  for (int i = 0; i < 300; ++i) long_list.push_back(i);
  expect_round_trip({{"a", {{"b", long_list}}}, {"c", {long_list, long_list}}});
}

TEST(Overrides, SetValues) {
  json config = parse("train: {lr: 0.1, steps: 5}\nname: x");
  set_override(config, "train.lr=1e-4");
  set_override(config, "model.encoder.depths=[32,64]");
  set_override(config, "name=run = 3");
  set_override(config, "train.note='12'");
  set_override(config, "clip=3");
  set_override(config, "clip=null");
  set_override(config, "clip.norm=1");
  set_override(config, "train.steps=null");
  set_override(config, "train.none=null");
  set_override(config, "data={path: a.npy, size: 3}");
  EXPECT_EQ(config, parse("{train: {lr: 1e-4, note: '12'}, model: {encoder: {depths: [32, 64]}}, "
                          "name: 'run = 3', clip: {norm: 1}, data: {path: a.npy, size: 3}}"));
}

TEST(Overrides, RefuseWhatIsNone) {
  const auto refused = [](const std::string& assignment, const std::string& reason) {
    json config = parse("train: {lr: 0.1}\nlist: [1]");
    const json before = config;
    expect_error(ErrorKind::usage, reason, [&] { set_override(config, assignment); });
    EXPECT_EQ(config, before) << assignment;
  };
  refused("train.lr", "expected key=value");
  refused("", "expected key=value");
  refused("=3", "an empty part");
  refused("train.=3", "an empty part");
  refused(".lr=3", "an empty part");
  refused("train..lr=3", "an empty part");
  refused("new..lr=3", "an empty part");
  refused("train.lr.x=3", "'train.lr' is number, not an object");
  refused("list.0=3", "'list' is array");
  refused("train.lr=", "has no value");
  refused("train.lr=[1", "value: line 1");
}

}  // namespace
}  // namespace convssm::io
