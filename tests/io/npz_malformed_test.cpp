// Damaged .npz files, one kind per line, each with the reason that must be given.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "../base/scratch_folder.h"
#include "convssm/io/npz.h"
#include "malformed.h"
#include "samples.h"
#include "zip_parts.h"

namespace convssm::io {
namespace {

void read_all(const std::shared_ptr<const Source>& source) {
  const NpzFile file(source);
  for (const std::string& name : file.names()) EXPECT_EQ(file.read(name).shape(), file.info(name).shape);
}

const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n";
const std::string content = std::string("\x93NUMPY\1\0", 8) + number(header.size(), 2) + header + "1234";

using Edit = std::function<void(ZipPart&)>;

// An archive of one member, a.npy, after an edit of its parts.
Malformed member(const std::string& kind, const std::string& reason, const Edit& edit, bool deflated = false) {
  ZipPart part = zip_part("a.npy", content, deflated, 0);
  edit(part);
  return {kind, join({part}), reason};
}

// The same number in the member's header and in the directory.
Edit set_both(size_t local_offset, uint64_t value, size_t size) {
  return [=](ZipPart& part) {
    patch(part.local, local_offset, value, size);
    patch(part.central, local_offset + 2, value, size);
  };
}

Edit set_central(size_t offset, uint64_t value, size_t size) {
  return [=](ZipPart& part) { patch(part.central, offset, value, size); };
}

Edit set_local(size_t offset, uint64_t value, size_t size) {
  return [=](ZipPart& part) { patch(part.local, offset, value, size); };
}

// The archive of one member after an edit of the last `record` bytes.
Malformed ending(const std::string& kind, const std::string& reason, size_t offset, uint64_t value, size_t size,
                 bool end64 = false) {
  std::string bytes = join({zip_part("a.npy", content, false, 0)}, end64);
  patch(bytes, bytes.size() - (end64 ? 22 + 20 + 56 : 22) + offset, value, size);
  return {kind, bytes, reason};
}

TEST(Npz, TheUndamagedArchivesAreRead) {
  for (const bool deflated : {false, true}) {
    for (const bool end64 : {false, true}) {
      const std::string bytes = join({zip_part("a.npy", content, deflated, 0)}, end64);
      read_all(memory_source("good", as_bytes(bytes)));
    }
  }
}

TEST(Npz, PiecesAreRefused) {
  expect_prefixes_refused(read_text(data_path("stored.npz")), read_all);
  expect_prefixes_refused(read_text(data_path("streamed.npz")), read_all);
  expect_prefixes_refused(join({zip_part("a.npy", content, true, 0)}, true), read_all);
}

TEST(Npz, DamageIsSurvived) {
  expect_damage_survived(read_text(data_path("streamed.npz")), read_all);
  expect_damage_survived(read_text(data_path("mixed.npz")), read_all);
  expect_damage_survived(join({zip_part("a.npy", content, true, 0)}, true), read_all);
  expect_damage_survived(join({zip_part("a.npy", content, false, 0)}), read_all);
}

TEST(Npz, MalformedEnds) {
  const std::string good = join({zip_part("a.npy", content, false, 0)});
  for (const Malformed& file : {
           Malformed{"empty file", "", "at least 22 bytes, this one has 0"},
           Malformed{"no zip file", std::string(100, 'x'), "no end record of a zip file"},
           Malformed{"npy file", content, "no end record of a zip file"},
           Malformed{"bytes after the end", good + "x", "no end record of a zip file"},
           Malformed{"bytes before the start", "x" + good, "does not end at byte"},
           Malformed{"only an end record with a count", end_record(1, 0, 0),
                     "1 members do not fit in a zip directory of 0 bytes"},
           ending("comment longer than the file", "no end record", 20, 1, 2),
           ending("disk number", "several disks", 4, 1, 2),
           ending("disk of the directory", "several disks", 6, 1, 2),
           ending("count of this disk", "several disks", 8, 2, 2),
           ending("both counts", "2 members do not fit", 8, 0x00020002, 4),
           ending("count of 0", "unknown data at its end", 8, 0, 4),
           ending("count of 65535", "65535 members do not fit", 8, UINT32_MAX, 4),
           ending("directory size 0", "does not end at byte", 12, 0, 4),
           ending("directory size 2^32-1", "does not end at byte", 12, UINT32_MAX, 4),
           ending("directory offset", "does not end at byte", 16, 1, 4),
           ending("directory offset 2^32-1", "does not end at byte", 16, UINT32_MAX, 4),
           ending("zip64 signature", "no ZIP64 end record where it should be", 0, 0, 4, true),
           ending("zip64 record size", "wrong size of the ZIP64 end record", 4, 45, 8, true),
           ending("zip64 record size 2^64-1", "wrong size of the ZIP64 end record", 4, UINT64_MAX, 8, true),
           ending("zip64 disk", "several disks", 16, 1, 4, true),
           ending("zip64 directory disk", "several disks", 20, 1, 4, true),
           ending("zip64 count of this disk", "members on other disks", 24, 2, 8, true),
           ending("zip64 count", "members on other disks", 32, 2, 8, true),
           ending("zip64 size", "end records disagree", 40, 1, 8, true),
           ending("zip64 offset", "end records disagree", 48, UINT64_MAX, 8, true),
           ending("zip64 locator disk", "several disks", 56 + 4, 1, 4, true),
           ending("zip64 locator offset", "ZIP64 end record is outside", 56 + 8, UINT64_MAX, 8, true),
           ending("zip64 locator offset a little off", "outside", 56 + 8, good.size() - 21, 8, true),
           ending("zip64 locator disks", "several disks", 56 + 16, 2, 4, true),
       }) {
    expect_refused(file, read_all);
  }
}

TEST(Npz, MalformedDirectories) {
  const auto nothing = [](ZipPart&) {};
  const auto add_extra = [](const std::string& extra, uint64_t size) {
    return [=](ZipPart& part) {
      part.central += extra;
      patch(part.central, 30, size, 2);
    };
  };
  Malformed twice = member("the same member twice", "two members are named 'a.npy'", nothing);
  const ZipPart part = zip_part("a.npy", content, false, 0);
  ZipPart again = zip_part("a.npy", content, false, part.local.size() + part.data.size());
  twice.bytes = join({part, again});
  Malformed overlap = member("overlap", "'b.npy' overlaps another one", nothing);
  const ZipPart inner = zip_part("b.npy", content, false, part.local.size());
  ZipPart outer = zip_part("a.npy", inner.local + inner.data, false, 0);
  overlap.bytes = join({outer, {"", "", inner.central}});

  for (const Malformed& file : {
           twice,
           overlap,
           member("entry signature", "expected an entry of the zip directory", set_central(0, 0, 4)),
           member("entry cut by a long name", "leaves the zip directory", set_central(28, 0xffff, 2)),
           member("entry cut by a long extra", "leaves the zip directory", set_central(30, 0xffff, 2)),
           member("entry cut by a long comment", "leaves the zip directory", set_central(32, 1, 2)),
           member("short name", "unknown data at its end", set_central(28, 4, 2)),
           member("member on another disk", "several disks", set_central(34, 1, 2)),
           member("encrypted", "'a.npy' is encrypted: save it without a password", set_both(6, 1, 2)),
           member("strongly encrypted", "is encrypted", set_both(6, 0x41, 2)),
           member("masked headers", "is encrypted", set_both(6, 0x2000, 2)),
           member("patched data", "is patched data", set_both(6, 0x20, 2)),
           member("method 1", "compression method 1; supported are", set_both(8, 1, 2)),
           member("lzma", "compression method 14", set_both(8, 14, 2)),
           member("method 65535", "compression method 65535", set_both(8, 0xffff, 2)),
           member("stored, but of another size", "cannot have 5 bytes when", set_both(22, 5, 4)),
           member("expands too much", "cannot have 1000000000 bytes when", set_both(22, 1000000000, 4), true),
           member("expands from nothing", "when 0 are stored", set_both(18, 0, 4), true),
           member("beyond the file", "leave the file",
                  [](ZipPart& p) { set_both(18, 1u << 30, 4)(p), set_both(22, 1u << 30, 4)(p); }),
           member("header outside of the file", "is outside of the file", set_central(42, 1u << 30, 4)),
           member("header at the directory", "is outside of the file", set_central(42, 100, 4)),
           member("header elsewhere", "no header of member 'a.npy' where", set_central(42, 1, 4)),
           member("zip64 missing", "cannot have 4294967295 bytes", set_central(24, UINT32_MAX, 4)),
           member("zip64 too short", "ZIP64 field has no value",
                  [&](ZipPart& p) {
                    set_central(24, UINT32_MAX, 4)(p), add_extra(number(1, 2) + number(4, 2) + number(0, 4), 8)(p);
                  }),
           member("zip64 size of 2^64-1", "cannot have 18446744073709551615 bytes",
                  [&](ZipPart& p) {
                    set_central(24, UINT32_MAX, 4)(p),
                        add_extra(number(1, 2) + number(8, 2) + number(UINT64_MAX, 8), 12)(p);
                  }),
           member("zip64 offset of 2^64-1", "is outside of the file",
                  [&](ZipPart& p) {
                    set_central(42, UINT32_MAX, 4)(p),
                        add_extra(number(1, 2) + number(8, 2) + number(UINT64_MAX, 8), 12)(p);
                  }),
           member("extra field longer than its space", "leaves its zip header",
                  add_extra(number(9, 2) + number(5, 2), 4)),
           member("name not UTF-8", "is not UTF-8",
                  [](ZipPart& p) { set_both(6, 0x800, 2)(p), p.local[30] = p.central[46] = '\xff'; }),
       }) {
    expect_refused(file, read_all);
  }
}

TEST(Npz, MalformedMembers) {
  const auto set_content = [](const std::string& text) {
    return [=](ZipPart& part) { part = zip_part("a.npy", text, true, 0); };
  };
  const auto cut_data = [](ZipPart& part) {
    part.data.pop_back();
    set_both(18, part.data.size(), 4)(part);
  };
  const auto lengthen_data = [](ZipPart& part) {
    part.data += "x";
    set_both(18, part.data.size(), 4)(part);
  };
  for (const Malformed& file : {
           member("signature", "no header of member", set_local(0, 0, 4)),
           member("flags differ", "disagree on the flags", set_local(6, 2, 2)),
           member("method differs", "disagree on the method", set_local(8, 8, 2)),
           member("checksum differs", "disagree on the checksum", set_local(14, 1, 4)),
           member("compressed size differs", "disagree on the compressed size", set_local(18, 1, 4)),
           member("size differs", "disagree on the size", set_local(22, 1, 4)),
           member("size 0 without a descriptor", "disagree on the size", set_local(22, 0, 4)),
           member("name differs", "'a.npy' is 'b.npy' in its header", [](ZipPart& p) { p.local[30] = 'b'; }),
           member("name length", "leave the file", set_local(26, 0xffff, 2)),
           member("extra length", "leave the file", set_local(28, 1, 2)),
           member("wrong checksum", "bad.file('a.npy'): at byte 72: the checksum is", set_both(14, 1, 4)),
           member("wrong checksum, deflated", "the checksum is", set_both(14, 1, 4), true),
           member("damaged data", "the checksum is", [](ZipPart& p) { p.data.back() = 'x'; }),
           member(
               "damaged deflate", "the compressed data is damaged: invalid block type",
               [](ZipPart& p) { p.data[0] = '\xff'; }, true),
           member("deflate cut short", "the compressed data is cut short", cut_data, true),
           member("deflate too long", "unused bytes after the compressed data", lengthen_data, true),
           member("declared size too small", "needs 4 bytes of data, found 3", set_both(22, content.size() - 1, 4),
                  true),
           member("declared size too large", "needs 4 bytes of data, found 5", set_both(22, content.size() + 1, 4),
                  true),
           member("less than declared", "ends before the declared 72 bytes",
                  [&](ZipPart& p) {
                    set_content(content.substr(0, content.size() - 1))(p), set_both(22, content.size(), 4)(p);
                  }),
           member("more than declared", "holds more than 72 bytes",
                  [&](ZipPart& p) { set_content(content + "5")(p), set_both(22, content.size(), 4)(p); }),
           member("empty", "a.npy'): at byte 0: expected 8 more bytes, but only 0", set_content("")),
           member("not an array", "expected the magic", set_content("not an array")),
           member("array cut short", "needs 4 bytes of data, found 2",
                  set_content(content.substr(0, content.size() - 2))),
           member("array too long", "needs 4 bytes of data, found 1000004",
                  set_content(content + std::string(1000000, 'x'))),
           member("header beyond the member", "but only", set_content(content.substr(0, 20))),
       }) {
    expect_refused(file, read_all);
  }
}

}  // namespace
}  // namespace convssm::io
