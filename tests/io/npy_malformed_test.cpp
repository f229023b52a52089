// Damaged .npy files, one kind per line, each with the reason that must be given.
#include <gtest/gtest.h>

#include <string>

#include "../base/scratch_folder.h"
#include "convssm/io/npy.h"
#include "malformed.h"
#include "samples.h"

namespace convssm::io {
namespace {

void read_all(const std::shared_ptr<const Source>& source) { read_npy(*make_reader(source)); }

std::string npy(const std::string& header, const std::string& data = "", char version = 1) {
  const uint32_t length = static_cast<uint32_t>(header.size());
  const std::string size(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return "\x93NUMPY" + std::string{version, '\0'} + size + header + data;
}

TEST(Npy, PiecesAreRefused) {
  expect_prefixes_refused(read_text(data_path("little_f4.npy")), read_all);
  expect_prefixes_refused(read_text(data_path("version_3.npy")), read_all);
  expect_prefixes_refused(read_text(data_path("empty.npy")), read_all);
}

TEST(Npy, DamageIsSurvived) {
  for (const char* name : {"little_f4.npy", "fortran_big_c16.npy", "version_2.npy", "scalar.npy", "structured.npy"}) {
    expect_damage_survived(read_text(data_path(name)), read_all);
  }
}

Malformed descr(const std::string& text, const std::string& reason) {
  return {"descr " + text, npy("{'descr': " + text + ", 'fortran_order': False, 'shape': (4,), }\n", "1234"), reason};
}

Malformed shape(const std::string& text, const std::string& reason) {
  return {"shape " + text, npy("{'descr': '|u1', 'fortran_order': False, 'shape': " + text + ", }\n", "1234"), reason};
}

Malformed header(const std::string& text, const std::string& reason) {
  return {"header " + text, npy(text, "1234"), reason};
}

TEST(Npy, MalformedContainers) {
  const std::string good = "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n";
  for (const Malformed& file : {
           Malformed{"empty file", "", "expected 8 more bytes, but only 0"},
           Malformed{"wrong magic", "\x93NUMPX" + npy(good, "1234").substr(6), "expected the magic"},
           Malformed{"zip file", "PK\3\4............",
                     "expected the magic '\\x93NUMPY' of a .npy file, found 'PK\\x03\\x04..'"},
           Malformed{"version 0", npy(good, "1234", 0), "version 0.0 is not known"},
           Malformed{"version 4", npy(good, "1234", 4), "version 4.0 is not known; known are 1.0, 2.0 and 3.0"},
           Malformed{"version 255", npy(good, "1234", '\xff'), "version 255.0"},
           Malformed{"version 1.1", std::string("\x93NUMPY\1\1\0\0", 10), "version 1.1"},
           Malformed{"header length 0", npy("", "1234"), "expected '{' at the start, found the end of the header"},
           Malformed{"header longer than the file", std::string("\x93NUMPY\1\0\xff\xff{}", 12),
                     "has 65535 bytes, but only 2 follow"},
           Malformed{"header of 4 GiB", std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14),
                     "has 4294967295 bytes, more than"},
           Malformed{"no data", npy(good), "needs 4 bytes of data, found 0: the file is cut short"},
           Malformed{"data cut short", npy(good, "123"), "needs 4 bytes of data, found 3: the file is cut short"},
           Malformed{"data too long", npy(good, "12345"), "needs 4 bytes of data, found 5: the file is too long"},
           Malformed{"version 1 read as 2", npy(good, "1234").replace(6, 1, "\2"), "the header has"},
       }) {
    expect_refused(file, read_all);
  }
}

TEST(Npy, MalformedHeaders) {
  for (const Malformed& file : {
           header("{}", "one of the keys descr, fortran_order and shape is missing"),
           header("{'descr': '|u1', 'fortran_order': False}", "is missing"),
           header("{'descr': '|u1', 'shape': (4,)}", "is missing"),
           header("{'fortran_order': False, 'shape': (4,)}", "is missing"),
           header("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (4,)}", "a key is there twice"),
           header("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), 'x': 1}", "unknown key 'x'"),
           header("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)",
                  "expected '}' or ',' after a value, found the end"),
           header("{'descr': '|u1', 'fortran_order': False, 'shape': (4,),", "expected a key in quotes, found the end"),
           header("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)} x", "expected nothing after '}', found 'x'"),
           header(std::string("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}\0", 56),
                  "expected nothing after '}', found '\\x00'"),
           header("{'descr': '|u1' 'fortran_order': False, 'shape': (4,)}", "expected '}' or ',' after a value"),
           header("{'descr' '|u1', 'fortran_order': False, 'shape': (4,)}", "expected ':' after a key"),
           header("{descr: '|u1', 'fortran_order': False, 'shape': (4,)}", "expected a key in quotes, found 'descr: "),
           header("{'descr: '|u1'", "expected ':' after a key, found '|u1"),
           header("{'descr", "a key has no closing quote"),
           header("{1: 2}", "expected a key in quotes, found '1: 2}'"),
           header("{,}", "expected a key in quotes"),
           header(std::string(60000, '{'), "expected a key in quotes"),
           header("('descr', '|u1')", "expected '{' at the start"),
           header("\xff\xfe", "expected '{' at the start, found '\\xff\\xfe'"),
           header("{'descr': '|u1', 'fortran_order': 0, 'shape': (4,)}",
                  "expected True or False as fortran_order, found '0, "),
           header("{'descr': '|u1', 'fortran_order': false, 'shape': (4,)}", "expected True or False"),
           header("{'descr': '|u1', 'fortran_order': 'True', 'shape': (4,)}", "expected True or False"),
           header("{'descr': '|u1', 'fortran_order': Truest, 'shape': (4,)}", "after a value, found 'st, "),
           descr("'<f4", "dtype '<f4, ' is not supported"),
           descr("4", "expected descr in quotes, found '4, "),
           descr("None", "expected descr in quotes"),
           descr("''", "dtype '' is not supported"),
           descr("'<'", "dtype '<' is not supported"),
           descr("'f4'", "dtype 'f4' is not supported"),
           descr("'<f3'", "dtype '<f3' is not supported"),
           descr("'<f04'", "dtype '<f04' is not supported"),
           descr("'<f4 '", "dtype '<f4 ' is not supported"),
           descr("'<f99999999999999999999'", "is not supported"),
           descr("'|f4'", "dtype '|f4' has no byte order"),
           descr("'!f4'", "dtype '!f4' is not supported"),
           descr("'<b4'", "dtype '<b4' is not supported"),
           descr("'<c4'", "dtype '<c4' is not supported"),
           descr("'|O'", "dtype '|O' holds Python objects"),
           descr("'<U3'", "dtype '<U3' holds text"),
           descr("'|V4'", "dtype '|V4' holds raw bytes"),
           descr("[('a', '<f4')]", "structured dtype"),
           descr(std::string(50000, '['), "structured dtype"),
           descr("('<f4', (2,))", "expected descr in quotes"),
       }) {
    expect_refused(file, read_all);
  }
}

TEST(Npy, MalformedShapes) {
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  for (const Malformed& file : {
           shape("4", "expected '(' before the lengths of shape"),
           shape("(4)", "must be written (n,)"),
           shape("[4]", "expected '(' before the lengths of shape"),
           shape("(4", "expected a whole number in shape, found '}"),
           shape("(4, 1 2", "expected ')' after the lengths of shape, found '2, }"),
           shape("(4,,)", "expected a whole number in shape, found ',)"),
           shape("(,)", "expected a whole number in shape"),
           shape("(-4,)", "a length in shape is negative: '-4,)"),
           shape("(-2, -2)", "a length in shape is negative"),
           shape("(+4,)", "expected a whole number in shape"),
           shape("(4.0,)", "must be written (n,), found '.0,)"),
           shape("(1, 4.0)", "expected ')' after the lengths of shape, found '.0)"),
           shape("(4e0,)", "must be written (n,)"),
           shape("(0x4,)", "must be written (n,)"),
           shape("('4',)", "expected a whole number in shape"),
           shape("(None,)", "expected a whole number in shape, found 'None"),
           shape("((4,),)", "expected a whole number in shape, found '(4,)"),
           shape(std::string(50000, '('), "expected a whole number in shape, found '(((("),
           shape("(9223372036854775808,)", "a length in shape is not below 2^63"),
           shape("(99999999999999999999999999,)", "a length in shape is not below 2^63"),
           shape("(9223372036854775807,)", "needs 9223372036854775807 bytes of data, found 4"),
           shape("(4611686018427387905, 4)", "the product of shape [4611686018427387905, 4] leaves 64 bits"),
           shape("(0, 9223372036854775807, 2)", "leaves 64 bits"),
           shape("(1000000000000,)", "needs 1000000000000 bytes of data, found 4"),
           shape("(0,)", "needs 0 bytes of data, found 4"),
           shape("()", "needs 1 bytes of data, found 4"),
           shape(many + ")", "more than 64 dimensions"),
       }) {
    expect_refused(file, read_all);
  }
}

}  // namespace
}  // namespace convssm::io
