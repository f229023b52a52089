// Damaged safetensors files, one kind per line, each with the reason that must be given.
#include <gtest/gtest.h>

#include <string>

#include "../base/scratch_folder.h"
#include "convssm/io/safetensors.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

std::string with_length(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

void read_all(const std::shared_ptr<const Source>& source) {
  const SafetensorsFile file(source);
  for (const std::string& name : file.names()) EXPECT_EQ(file.read(name).shape(), file.info(name).shape);
}

TEST(Safetensors, PiecesAreRefused) {
  expect_prefixes_refused(read_text(data_path("python.safetensors")), read_all);
  expect_prefixes_refused(with_length("{}"), read_all);
}

TEST(Safetensors, DamageIsSurvived) { expect_damage_survived(read_text(data_path("python.safetensors")), read_all); }

// {"a": <entry>} with 4 bytes of data.
Malformed entry(const std::string& kind, const std::string& json, const std::string& reason) {
  return {kind, with_length("{\"a\":" + json + "}", "1234"), reason};
}

Malformed header(const std::string& kind, const std::string& json, const std::string& reason) {
  return {kind, with_length(json, "1234"), reason};
}

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Safetensors, MalformedContainers) {
  const std::string length_of_2_64(8, '\xff');
  const std::string good = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  for (const Malformed& file : {
           Malformed{"empty file", "", "at least 8 bytes, this one has 0"},
           Malformed{"seven bytes", "1234567", "at least 8 bytes, this one has 7"},
           Malformed{"no header", std::string(8, '\0'), "must begin with '{'"},
           Malformed{"length of 2^64-1", length_of_2_64 + "{}", "above the limit"},
           Malformed{"length over the limit", std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10),
                     "length is 100000001, above"},
           Malformed{"length over the file", std::string("\x03\0\0\0\0\0\0\0{}", 10),
                     "length is 3, but only 2 bytes follow"},
           Malformed{"another format", "\x89PNG\r\n\x1a\n....", "above the limit"},
           header("white space first", " {" + good + "}", "must begin with '{'"),
           header("an array", "[]", "must begin with '{'"),
           header("a byte order mark", "\xef\xbb\xbf{" + good + "}", "must begin with '{'"),
           header("no data for it", "{}", "the last 4 bytes belong to no tensor"),
           header("text after the object", "{" + good + "} x", "not valid JSON"),
           header("two objects", "{" + good + "}{}", "not valid JSON"),
           header("zero bytes as padding", "{" + good + "}" + std::string(3, '\0'), "not valid JSON: a zero byte"),
           header("object not closed", "{" + good, "not valid JSON"),
           header("text not closed", "{\"a", "not valid JSON"),
           header("endless text", "{\"" + std::string(1 << 20, 'a'), "not valid JSON"),
           header("a comment", "{/**/" + good + "}", "not valid JSON"),
           header("comma at the end", "{" + good + ",}", "not valid JSON"),
           header("not UTF-8", "{\"\xff\":1}", "not valid JSON"),
           header("half a surrogate", R"({"\ud800":1})", "not valid JSON"),
           header("control character", "{\"a\nb\":1}", "not valid JSON"),
           header("number out of range", R"({"a":1e400})", "not valid JSON"),
           header("NaN", R"({"a":NaN})", "not valid JSON"),
           header("deep arrays", "{\"a\":" + std::string(100000, '['),
                  "'a': expected an object for each name, found an array"),
           header("deep objects", repeat("{\"a\":", 100000), "'a': unknown key 'a'"),
           header("deep shape", R"({"a":{"shape":)" + std::string(100000, '['),
                  "expected a whole number from 0 to 2^63-1 in shape"),
           header("the same name twice", "{" + good + "," + good + "}", "'a': the name is there twice"),
           header("metadata twice", R"({"__metadata__":{},"__metadata__":{}})",
                  "'__metadata__': the name is there twice"),
           header("metadata key twice", R"({"__metadata__":{"k":"1","k":"2"}})", "the key 'k' is there twice"),
           header("metadata number", R"({"__metadata__":{"k":1}})",
                  "a string for each key of the metadata, found the number 1"),
           header("metadata null", R"({"__metadata__":{"k":null}})",
                  "a string for each key of the metadata, found null"),
           header("metadata object", R"({"__metadata__":{"k":{}}})",
                  "a string for each key of the metadata, found an object"),
           header("metadata list", R"({"__metadata__":{"k":[]}})",
                  "a string for each key of the metadata, found an array"),
           header("metadata is text", R"({"__metadata__":"k"})", "'__metadata__': expected an object"),
       }) {
    expect_refused(file, read_all);
  }
}

TEST(Safetensors, MalformedTensors) {
  for (const Malformed& file : {
           entry("null", "null", "expected an object for each name, found null"),
           entry("boolean", "true", "expected an object for each name, found true or false"),
           entry("number", "1", "expected an object for each name, found the number 1"),
           entry("empty", "{}", "one is missing"),
           entry("no dtype", R"({"shape":[4],"data_offsets":[0,4]})", "one is missing"),
           entry("no shape", R"({"dtype":"U8","data_offsets":[0,4]})", "one is missing"),
           entry("no offsets", R"({"dtype":"U8","shape":[4]})", "one is missing"),
           entry("one key more", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1})", "unknown key 'x'"),
           entry("dtype twice", R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})",
                 "'dtype' is there twice"),
           entry("shape twice", R"({"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]})",
                 "'shape' is there twice"),
           entry("offsets twice", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"data_offsets":[0,4]})",
                 "'data_offsets' is there twice"),
           entry("unknown dtype", R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})",
                 "unknown dtype 'F8_E4M3'; known are BOOL"),
           entry("empty dtype", R"({"dtype":"","shape":[4],"data_offsets":[0,4]})", "unknown dtype ''"),
           entry("small dtype", R"({"dtype":"u8","shape":[4],"data_offsets":[0,4]})", "unknown dtype 'u8'"),
           entry("dtype with a zero", R"({"dtype":"U8\u0000","shape":[4],"data_offsets":[0,4]})",
                 "unknown dtype 'U8\\x00'"),
           entry("dtype a number", R"({"dtype":8,"shape":[4],"data_offsets":[0,4]})",
                 "expected a string as dtype, found the number 8"),
           entry("shape a number", R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})", "expected an array as shape"),
           entry("shape an object", R"({"dtype":"U8","shape":{},"data_offsets":[0,4]})",
                 "expected an array as shape, found an object"),
           entry("negative length", R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})",
                 "found the negative number -4"),
           entry("two negative lengths", R"({"dtype":"U8","shape":[-2,-2],"data_offsets":[0,4]})",
                 "negative number -2"),
           entry("broken length", R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})", "in shape, found 4.0"),
           entry("exponent", R"({"dtype":"U8","shape":[4e0],"data_offsets":[0,4]})", "in shape, found 4e0"),
           entry("length of 2^63", R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]})",
                 "9223372036854775808 is not below 2^63"),
           entry("length of 2^64", R"({"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,4]})",
                 "in shape, found 18446744073709551616"),
           entry("text as length", R"({"dtype":"U8","shape":["4"],"data_offsets":[0,4]})", "in shape, found '4'"),
           entry("null as length", R"({"dtype":"U8","shape":[null],"data_offsets":[0,4]})", "in shape, found null"),
           entry("product overflows to 4", R"({"dtype":"U8","shape":[4611686018427387905,4],"data_offsets":[0,4]})",
                 "product of its shape leaves 64 bits"),
           entry("bytes overflow", R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,4]})",
                 "product of its shape leaves 64 bits"),
           entry("empty but overflows", R"({"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]})",
                 "leaves 64 bits"),
           entry("larger than its data", R"({"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4]})",
                 "need 4000000000000 bytes, data_offsets hold 4"),
           entry("smaller than its data", R"({"dtype":"U8","shape":[3],"data_offsets":[0,4]})",
                 "need 3 bytes, data_offsets hold 4"),
           entry("scalar of 4 bytes", R"({"dtype":"U8","shape":[],"data_offsets":[0,4]})",
                 "need 1 bytes, data_offsets hold 4"),
           entry("one offset", R"({"dtype":"U8","shape":[4],"data_offsets":[0]})",
                 "must be [begin, end], got 1 numbers"),
           entry("three offsets", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})",
                 "must be [begin, end], got 3 numbers"),
           entry("no offset", R"({"dtype":"U8","shape":[4],"data_offsets":[]})", "must be [begin, end], got 0 numbers"),
           entry("end before begin", R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})",
                 "data_offsets [4, 0] do not lie within the 4 bytes"),
           entry("end after the file", R"({"dtype":"U8","shape":[5],"data_offsets":[0,5]})",
                 "data_offsets [0, 5] do not lie within the 4 bytes"),
           entry("end at 2^64-1", R"({"dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551615]})",
                 "do not lie within"),
           entry("negative offset", R"({"dtype":"U8","shape":[4],"data_offsets":[-4,0]})",
                 "in data_offsets, found the negative number -4"),
           entry("broken offset", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4.5]})", "in data_offsets, found 4.5"),
           entry("nested offsets", R"({"dtype":"U8","shape":[4],"data_offsets":[[0,4]]})",
                 "in data_offsets, found an array"),
           entry("hole before it", R"({"dtype":"U8","shape":[3],"data_offsets":[1,4]})",
                 "bytes [0, 1) before it belong to no tensor"),
           entry("hole after it", R"({"dtype":"U8","shape":[3],"data_offsets":[0,3]})",
                 "the last 1 bytes belong to no tensor"),
           entry(
               "the same bytes twice",
               R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})",
               "overlaps"),
           entry(
               "overlap by one",
               R"({"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]})",
               "'b': its data overlaps"),
           entry(
               "hole between",
               R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]})",
               "'b': bytes [1, 2) before it"),
           entry(
               "empty tensor inside another",
               R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]})",
               "'b': its data overlaps"),
           entry("strange name", R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]},"\u001b\u0000b":1)",
                 "'\\x1b\\x00b': expected an object"),
       }) {
    expect_refused(file, read_all);
  }
}

}  // namespace
}  // namespace convssm::io
