// Recordings in grid files (NetCDF, Zarr, GRIB): one file, or a folder of them. Files that follow each other in time are one recording,
// whatever their names; where time has a gap a new clip begins. Files without times, or all of the same times, are clips of their own.
#pragma once

#include <memory>
#include <string>

#include "convssm/data/recording.h"

namespace convssm::data {

// Error(data) that names the files if their grids differ, or their times overlap in part.
std::unique_ptr<Recording> open_field_recording(const std::string& path, const RecordingOptions& options);

}  // namespace convssm::data
