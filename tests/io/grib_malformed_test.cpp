// Damaged GRIB files: what is refused before eccodes sees it, each kind for its reason; and that no damage leads to more than an Error
// behind that.
#include <gtest/gtest.h>

#include <fstream>

#include "convssm/io/grib.h"
#include "convssm/io/grib_messages.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

std::string grib_bytes(const std::string& name) {
  std::ifstream file(data_path("grib/" + name + ".grib"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void read_messages(std::shared_ptr<const Source> source) {
  for_each_grib_field(*source, [&](const GribField& field, const GribHeader& header) {
    EXPECT_TRUE(header.message.starts_with("GRIB") && header.message.ends_with("7777"));
    grib_message(*source, field);
  });
}

void read_values(std::shared_ptr<const Source> source) {
  const auto file = open_grib(std::move(source));
  for (const GridVariable& variable : file->variables()) file->read(variable);
}

// The first message of a file of edition 1, whose length is in three bytes.
std::string first_message(const std::string& name) {
  const std::string whole = grib_bytes(name);
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(whole[i])); };
  return whole.substr(0, byte(4) << 16 | byte(5) << 8 | byte(6));
}

TEST(GribMessages, CutOffFilesAreRefused) {
  expect_prefixes_refused(grib_bytes("several"), read_messages);
  expect_prefixes_refused(first_message("first"), read_messages);
}

TEST(GribMessages, DamageIsAnErrorAtWorst) {
  expect_damage_survived(grib_bytes("several"), read_messages);
  expect_damage_survived(first_message("first"), read_messages);
}

TEST(GribMessages, SaysWhatIsWrong) {
  const std::string second = grib_bytes("several"), one = first_message("first");
  const auto with = [](std::string whole, size_t at, const std::string& bytes) {
    return whole.replace(at, bytes.size(), bytes);
  };
  const size_t sections = 16 + 21;  // where section 3 begins
  for (const Malformed& file : std::vector<Malformed>{
           {"nothing", "", "no GRIB message in it"},
           {"padding alone", std::string(100, '\0'), "no GRIB message in it"},
           {"other bytes", "\x89HDF", "expected a GRIB message, found other bytes"},
           {"much padding", std::string(size_t{2} << 20, '\0'), "that are no GRIB message"},
           {"edition", with(one, 7, "\3"), "GRIB of edition 3"},
           {"end", with(one, one.size() - 1, "8"), "does not end with 7777"},
           {"length", with(one, 6, "\x09"), "at byte"},
           {"product definition", with(one, 8, std::string("\0\0\4", 3)),
            "the product definition of the message, at byte 8, has 4 bytes"},
           {"long section", with(one, 8, "\x7f"), "cut off"},
           {"huge message", with(second, 8, "\x7f"), "the end of the message at byte 0 is cut off"},
           {"number of a section", with(second, sections + 4, "\x9"), "section 9 of the message"},
           {"short section", with(second, sections, std::string("\0\0\0\2", 4)), "has 2 bytes"},
           {"missing section", with(second, sections + 4, "\2"), "the message has no section 3"},
           {"month", with(one, 21, "\x0d"), "the message is of no time: 2020-13-28 18:0:0"},
           {"hour of edition 2", with(second, 32, "\x19"), "the message is of no time: 2020-2-28 25:0:0"},
           {"trailing bytes", one + "\xff", "expected a GRIB message, found other bytes"},
           {"begin of another", one + "GRIB", "the message is cut off"}}) {
    expect_refused(file, read_messages);
  }
}

TEST(GribMalformed, EccodesIsGivenNothingThatIsCutOff) {
  if (!reads_grib()) GTEST_SKIP() << "built without eccodes";
  const std::string whole = grib_bytes("cube");
  for (size_t length = 1; length < whole.size(); length += 43) {
    const std::string beginning = whole.substr(0, length);
    try {
      read_values(memory_source("beginning", as_bytes(beginning)));
      ADD_FAILURE() << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_EQ(std::string(error.what()).find("beginning"), 0u) << error.what();
    }
  }
}

// Where the messages of a file begin, and its end.
std::vector<uint64_t> begins_of(const std::string& bytes) {
  std::vector<uint64_t> begins;
  for_each_grib_field(*memory_source("file", as_bytes(bytes)),
                      [&](const GribField& field, const GribHeader&) { begins.push_back(field.offset); });
  begins.push_back(bytes.size());
  return begins;
}

// As expect_damage_survived(), with one kind of damage for each byte: eccodes takes its time.
void expect_some_damage_survived(std::string bytes) {
  constexpr int damages[] = {0xff, 0x01, 0x80, 0x10};
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char before = bytes[i];
    bytes[i] = static_cast<char>(before ^ damages[i % 4]);
    try {
      read_values(memory_source("damaged", as_bytes(bytes)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    }
    bytes[i] = before;
  }
}

TEST(GribMalformed, DamageIsAnErrorAtWorst) {
  if (!reads_grib()) GTEST_SKIP() << "built without eccodes";
  expect_some_damage_survived(grib_bytes("several"));
  expect_some_damage_survived(first_message("first"));
  const std::string packings = grib_bytes("packings");
  const std::vector<uint64_t> begins = begins_of(packings);
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    expect_some_damage_survived(packings.substr(begins[i], begins[i + 1] - begins[i]));
  }
}

// eccodes takes these numbers on trust, and writes or reads beyond the end of its memory.
TEST(GribMalformed, SizesOfPackedValuesAreChecked) {
  if (!reads_grib()) GTEST_SKIP() << "built without eccodes";
  const std::string packings = grib_bytes("packings");
  const std::vector<uint64_t> begins = begins_of(packings);
  const auto damaged = [&](size_t number, const std::string& section, size_t at) {
    std::string message = packings.substr(begins[number], begins[number + 1] - begins[number]);
    const size_t found = message.find(section);
    EXPECT_NE(found, std::string::npos);
    message[found + at] = static_cast<char>(message[found + at] ^ 0x10);
    return message;
  };
  const std::string siz("\xff\x4f\xff\x51", 4), differences("\5\0\0\0\x0c\0\3", 7), blocks("\5\0\0\0\x0c\0\x2a", 7);
  expect_refused({"width of a picture", damaged(5, siz, 11), "its JPEG 2000 picture is not of its values"},
                 read_values);
  expect_refused({"height of a picture", damaged(5, siz, 12), "its JPEG 2000 picture is not of its values"},
                 read_values);
  expect_refused({"groups", damaged(4, differences, 27), "it has more groups than values"}, read_values);
  expect_refused({"blocks", damaged(3, blocks, 19), "CCSDS has no such blocks"}, read_values);
  const std::string simple("\5\0\0\0\x0c\0\0", 7);
  std::string bits = packings.substr(0, begins[1]);
  bits[bits.find(simple) + 15] = 127;
  expect_refused({"bits", bits, "it has fewer bits than its values"}, read_values);
}

}  // namespace
}  // namespace convssm::io
