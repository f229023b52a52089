// What the tests of all readers check of damaged files: that they are refused as damaged, by name and for the right
// reason, without allocating what they claim to hold; and that no damage leads to anything but an Error.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convssm/base/error.h"
#include "convssm/io/array.h"
#include "convssm/io/source.h"

namespace convssm::io {

// The largest block that operator new has given since the last reset (allocation_test.cpp replaces it).
size_t largest_allocation();
void reset_largest_allocation();

// Opens a file and reads everything in it.
using ReadAll = std::function<void(std::shared_ptr<const Source>)>;

struct Malformed {
  std::string kind;
  std::string bytes;
  std::string reason;  // a part of the message
};

inline std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

inline void expect_refused(const Malformed& file, const ReadAll& read_all) {
  SCOPED_TRACE(file.kind);
  reset_largest_allocation();
  try {
    read_all(memory_source("bad.file", as_bytes(file.bytes)));
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_LT(largest_allocation(), (1u << 20) + 2 * file.bytes.size());
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_EQ(text.find("bad.file"), 0u) << text;
    EXPECT_NE(text.find(file.reason), std::string::npos) << text << "\nexpected: " << file.reason;
    EXPECT_LT(text.size(), 1000u);
  }
}

// Cuts a valid file after every byte; none of the beginnings is valid.
inline void expect_prefixes_refused(const std::string& bytes, const ReadAll& read_all) {
  read_all(memory_source("whole", as_bytes(bytes)));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string beginning = bytes.substr(0, length);
    EXPECT_THROW(read_all(memory_source("beginning", as_bytes(beginning))), FormatError) << length << " bytes";
  }
}

// Changes every byte of a valid file in turn: the result may be valid, but nothing worse than an Error comes of it.
inline void expect_damage_survived(std::string bytes, const ReadAll& read_all) {
  for (char& byte : bytes) {
    const char before = byte;
    for (const int damage : {0x01, 0x10, 0x80, 0xff}) {
      byte = static_cast<char>(before ^ damage);
      try {
        read_all(memory_source("damaged", as_bytes(bytes)));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      }
    }
    byte = before;
  }
}

// `action` must throw an Error of this kind whose message holds `part`.
inline void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "did not throw: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\nexpected: " << part;
  }
}

}  // namespace convssm::io
