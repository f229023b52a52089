#include "convssm/io/tensorboard.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "../base/scratch_folder.h"
#include "malformed.h"

namespace convssm::io {
namespace {

// A decoder of its own: bitwise checksum, and fields by number.
uint32_t slow_crc32c(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) * 0x82f63b78u);
  }
  return ~crc;
}

template <typename T>
T number_at(const std::string& bytes, size_t position) {
  T value{};
  EXPECT_LE(position + sizeof value, bytes.size());
  if (position + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + position, sizeof value);
  return value;
}

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size();) {
    const auto length = number_at<uint64_t>(bytes, at);
    EXPECT_EQ(unmask(number_at<uint32_t>(bytes, at + 8)), slow_crc32c(bytes.substr(at, 8)));
    EXPECT_LE(at + 16 + length, bytes.size());
    out.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(unmask(number_at<uint32_t>(bytes, at + 12 + length)), slow_crc32c(out.back()));
    at += 16 + length;
    if (::testing::Test::HasFailure()) break;
  }
  return out;
}

// Field number to its content: length-delimited as it is, numbers as their little-endian bytes.
std::map<int, std::string> fields(const std::string& message) {
  std::map<int, std::string> out;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < message.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(message[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    size_t size = 0;
    if ((key & 7) == 0) {
      const uint64_t value = varint();
      out[static_cast<int>(key >> 3)] = std::string(reinterpret_cast<const char*>(&value), 8);
      continue;
    }
    size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
    out[static_cast<int>(key >> 3)] = message.substr(at, size);
    at += size;
  }
  return out;
}

std::map<int, std::string> value_of(const std::string& event) { return fields(fields(fields(event).at(5)).at(1)); }

TEST(Tensorboard, ScalarsAndImages) {
  const ScratchFolder folder;
  const Image image{3, 2, 3, std::vector<uint8_t>(18, 7)};
  std::string path;
  {
    EventWriter writer(folder.path("run/a"));
    writer.scalar("train/loss", 5, 0.25);
    writer.scalar("größe", int64_t{1} << 40, -3);
    writer.image("frames", 6, image);
    path = writer.path();
  }
  EXPECT_EQ(std::filesystem::path(path).filename().string().rfind("events.out.tfevents.", 0), 0u);
  const auto events = records(read_text(path));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(fields(events[0]).at(3), "brain.Event:2");
  EXPECT_GT(number_at<double>(fields(events[0]).at(1), 0), 1.5e9);  // seconds since 1970
  EXPECT_EQ(number_at<int64_t>(fields(events[1]).at(2), 0), 5);
  EXPECT_EQ(value_of(events[1]).at(1), "train/loss");
  EXPECT_EQ(number_at<float>(value_of(events[1]).at(2), 0), 0.25f);
  EXPECT_EQ(number_at<int64_t>(fields(events[2]).at(2), 0), int64_t{1} << 40);
  EXPECT_EQ(value_of(events[2]).at(1), "größe");
  const auto stored = fields(value_of(events[3]).at(4));
  EXPECT_EQ(number_at<int64_t>(stored.at(1), 0), 2);
  EXPECT_EQ(number_at<int64_t>(stored.at(2), 0), 3);
  EXPECT_EQ(number_at<int64_t>(stored.at(3), 0), 3);
  EXPECT_EQ(stored.at(4), encode_png(image));
}

TEST(Tensorboard, PurgeIsASessionStart) {
  const ScratchFolder folder;
  EventWriter writer(folder.path(), 120);
  writer.flush();
  const auto events = records(read_text(writer.path()));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(number_at<int64_t>(fields(events[1]).at(2), 0), 120);
  EXPECT_EQ(number_at<int64_t>(fields(fields(events[1]).at(7)).at(1), 0), 1);  // SessionLog.START
}

TEST(Tensorboard, TheFileHoldsWholeRecordsAtAnyTime) {
  const ScratchFolder folder;
  EventWriter writer(folder.path());
  for (int step = 0; step < 5000; ++step) {
    writer.scalar("loss", step, step);
    if (step % 1000 == 0) records(read_text(writer.path()));
  }
  EXPECT_GT(records(read_text(writer.path())).size(), 1000u);  // flushed by itself now and then
  writer.flush();
  EXPECT_EQ(records(read_text(writer.path())).size(), 5001u);
}

TEST(Tensorboard, TwoWritersHaveTwoFiles) {
  const ScratchFolder folder;
  const EventWriter first(folder.path()), second(folder.path());
  EXPECT_LT(first.path(), second.path());
}

TEST(Tensorboard, AFullDiskLosesNothing) {
  const ScratchFolder folder;
  EventWriter writer(folder.path());
  writer.scalar("loss", 1, 1);
  writer.flush();
  const std::string before = read_text(writer.path());
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before.size() + 10, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  writer.scalar("loss", 2, 2);
  expect_error(ErrorKind::io, "cannot write", [&] { writer.flush(); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text(writer.path()), before);
  writer.flush();
  EXPECT_EQ(records(read_text(writer.path())).size(), 3u);
}

TEST(Tensorboard, Refuses) {
  const ScratchFolder folder;
  EventWriter writer(folder.path("a"));
  expect_error(ErrorKind::usage, "a tag must be", [&] { writer.scalar("", 1, 1); });
  expect_error(ErrorKind::usage, "a tag must be", [&] { writer.scalar("\xff", 1, 1); });
  expect_error(ErrorKind::usage, "channels 1 or 3", [&] { writer.image("a", 1, Image{1, 1, 2, {1, 2}}); });
  folder.write("file", "");
  expect_error(ErrorKind::io, "cannot create", [&] { EventWriter(folder.path("file/a")); });
}

}  // namespace
}  // namespace convssm::io
