// In the place of io/grib.cpp where there is no eccodes.
#include "convssm/base/error.h"
#include "convssm/io/grib.h"

namespace convssm::io {

bool reads_grib() { return false; }

std::unique_ptr<GridFile> open_grib(std::shared_ptr<const Source> source) {
  fail(ErrorKind::data,
       "{}: convssm was built without eccodes, which reads GRIB files; install libeccodes-dev and build it again, or "
       "convert the file: cdo -f nc4 copy '{}' out.nc",
       source->name(), source->name());
}

std::unique_ptr<GridFile> open_grib(const std::string& path) { return open_grib(open_source(path)); }

}  // namespace convssm::io
