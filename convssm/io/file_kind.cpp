// A table of first bytes. Three formats are told by a rule instead: PNM, IDX, which begins with zeros, and text.
#include "convssm/io/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "convssm/base/error.h"
#include "convssm/base/file_ending.h"
#include "convssm/io/source.h"
#include "convssm/io/text.h"

namespace convssm::io {
namespace {

using namespace std::string_view_literals;
namespace fs = std::filesystem;

constexpr size_t head_bytes = 1024;

struct Magic {
  size_t offset;
  std::string_view bytes;
  const char* name;
  const char* ending;
  const char* advice;  // {} is the path
};

constexpr const char* video_advice = "convert it: ffmpeg -i '{}' -vf scale=64:64 clip.mp4";
constexpr const char* picture_advice = "convert it to .png, or a sequence to a video: ffmpeg -i %04d.jpg clip.mp4";
constexpr const char* unpack_advice = "unpack it first";

constexpr Magic magics[] = {
    {0, "\x93NUMPY"sv, "a NumPy array", ".npy", ""},
    {0, "PK\x03\x04"sv, "a zip archive", ".npz", ""},
    {0, "PK\x05\x06"sv, "an empty zip archive", ".npz", ""},
    {0, "GIF8"sv, "a GIF", ".gif", ""},
    {4, "ftyp"sv, "an MP4 video", ".mp4", ""},
    {0, "\x89PNG\r\n\x1a\n"sv, "a PNG picture", ".png", ""},
    {0, "\x1f\x8b"sv, "a gzip file", ".gz", unpack_advice},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file", ".h5", ""},
    {512, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file", ".h5", ""},
    {0, "CDF\x01"sv, "a NetCDF file", ".nc", ""},
    {0, "CDF\x02"sv, "a NetCDF file", ".nc", ""},
    {0, "CDF\x05"sv, "a NetCDF file", ".nc", ""},
    {0, "GRIB"sv, "a GRIB file", ".grib", ""},
    {4, "moov"sv, "a QuickTime video", ".mov", ""},
    {4, "mdat"sv, "a QuickTime video", ".mov", ""},
    {4, "wide"sv, "a QuickTime video", ".mov", ""},
    {4, "free"sv, "a QuickTime video", ".mov", ""},
    {4, "skip"sv, "a QuickTime video", ".mov", ""},
    {8, "AVI "sv, "an AVI video", ".avi", ""},
    {0, "\x1a\x45\xdf\xa3"sv, "a Matroska or WebM video", ".mkv", ""},
    {0, "FLV\x01"sv, "a Flash video", "", video_advice},
    {0, "\x00\x00\x01\xba"sv, "an MPEG video", "", video_advice},
    {0, "\x00\x00\x01\xb3"sv, "an MPEG video", "", video_advice},
    {8, "WEBP"sv, "a WebP picture", "", picture_advice},
    {0, "\xff\xd8\xff"sv, "a JPEG picture", ".jpg", ""},
    {0, "II*\0"sv, "a TIFF file", ".tif", ""},
    {0, "MM\0*"sv, "a TIFF file", ".tif", ""},
    {0, "II+\0"sv, "a TIFF file", ".tif", ""},
    {0, "MM\0+"sv, "a TIFF file", ".tif", ""},
    {0, "SIMPLE  ="sv, "a FITS file", "",
     "save its array as .npy, in Python: np.save('clips.npy', astropy.io.fits.getdata('{}'))"},
    {0, "MATLAB 5.0 MAT-file"sv, "a MATLAB file", "",
     "save its array as .npy, in Python: np.save('clips.npy', scipy.io.loadmat('{}')['NAME'])"},
    {0, "PAR1"sv, "a Parquet file", "", "save its numbers as an array of frames: np.save('clips.npy', ...)"},
    {0, "BZh"sv, "a bzip2 file", "", unpack_advice},
    {0, "\x28\xb5\x2f\xfd"sv, "a Zstandard file", "", unpack_advice},
    {0, "\xfd\x37zXZ"sv, "an xz file", "", unpack_advice},
    {0, "7z\xbc\xaf"sv, "a 7z archive", "", unpack_advice},
    {257, "ustar"sv, "a tar archive", "", unpack_advice},
};

std::string head_of(const Source& source) {
  std::string head(std::min<uint64_t>(head_bytes, source.size()), '\0');
  source.read(0, std::as_writable_bytes(std::span(head.data(), head.size())));
  return head;
}

bool is_idx(std::string_view head) {
  if (head.size() < 4 || head[0] != 0 || head[1] != 0 || head[3] < 1) return false;
  return "\x08\x09\x0b\x0c\x0d\x0e"sv.find(head[2]) != std::string_view::npos;
}

// A number of the format behind a P, then a blank or a remark.
bool is_pnm(std::string_view head) {
  return head.size() >= 3 && head[0] == 'P' && "2356"sv.find(head[1]) != std::string_view::npos &&
         " \t\r\n#"sv.find(head[2]) != std::string_view::npos;
}

bool is_text(std::string_view head) {
  const auto control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  };
  if (std::ranges::any_of(head, control)) return false;
  for (size_t cut = 0; cut < 4 && cut < head.size(); ++cut) {  // the last letter may be cut
    if (is_utf8(head.substr(0, head.size() - cut))) return true;
  }
  return false;
}

bool is_zarr(const fs::path& folder) {
  return std::ranges::any_of(std::array{".zgroup", ".zarray", ".zmetadata", "zarr.json"},
                             [&](const char* name) { return fs::exists(folder / name); });
}

FileKind kind_of_head(std::string_view head, const std::string& path) {
  if (head.empty()) return {"an empty file", "", ""};
  for (const Magic& magic : magics) {
    if (head.size() < magic.offset || !head.substr(magic.offset).starts_with(magic.bytes)) continue;
    return {magic.name, magic.ending, fmt::format(fmt::runtime(magic.advice), path)};
  }
  if (is_pnm(head)) return {"a PNM picture", ".pnm", ""};
  if (is_idx(head)) return {"an IDX file", ".idx", "use it as digits: data: {name: moving-mnist, images: FILE}"};
  if (!is_text(head)) return {};
  return {"text", "",
          fmt::format("numbers in text become an array of frames with NumPy: np.save('clips.npy', "
                      "np.loadtxt('{}').reshape(FRAMES, ROWS, COLUMNS))",
                      path)};
}

}  // namespace

FileKind file_kind(const Source& source) { return kind_of_head(head_of(source), source.name()); }

FileKind file_kind(const std::string& path) {
  if (!fs::is_directory(path)) return file_kind(*open_source(path));
  if (!is_zarr(path)) return {};
  return {"a Zarr store", ".zarr", ""};
}

std::string reading_ending(const std::string& path) {
  const std::string named = file_ending(path);
  try {
    const FileKind found = file_kind(path);
    return found.name.empty() ? named : found.ending;
  } catch (const Error&) {
    return named;
  }
}

}  // namespace convssm::io
