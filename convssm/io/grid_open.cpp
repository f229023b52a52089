// The endings are those of io/file_kind.h.
#include "convssm/io/grid_open.h"

#include <algorithm>

#include "convssm/base/error.h"
#include "convssm/io/file_kind.h"
#include "convssm/io/grib.h"
#include "convssm/io/netcdf.h"
#include "convssm/io/zarr.h"

namespace convssm::io {
namespace {

struct GridReader {
  const char* ending;
  std::unique_ptr<GridFile> (*open)(const std::string&);
};

constexpr GridReader grid_readers[] = {
    {".nc", open_netcdf}, {".h5", open_netcdf}, {".grib", open_grib}, {".zarr", open_zarr}};

const GridReader* reader_of(const std::string& ending) {
  const auto at = std::ranges::find(grid_readers, ending, &GridReader::ending);
  return at == std::end(grid_readers) ? nullptr : at;
}

}  // namespace

bool is_grid(const std::string& path) {
  try {
    return reader_of(file_kind(path).ending) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<GridFile> open_grid(const std::string& path) {
  const FileKind kind = file_kind(path);
  if (const GridReader* reader = reader_of(kind.ending)) return reader->open(path);
  fail(ErrorKind::data, "[open_grid] '{}' is {}, not NetCDF, HDF5, GRIB or Zarr", path,
       kind.name.empty() ? "of no kind that is known here" : kind.name);
}

}  // namespace convssm::io
