// What a file is, told by its first bytes: names are given by people. Knows the formats that are read here and, so that an
// error can say what was found and what to do, common ones that are not.
#pragma once

#include <string>

#include "convssm/io/source.h"

namespace convssm::io {

struct FileKind {
  std::string name;  // "an HDF5 file"; "" if the bytes are of no known kind
  // Of a format that is read here: ".npy", ".npz", ".h5" (NetCDF-4 too), ".nc" (classic NetCDF), ".grib", ".zarr", ".gif", ".mp4", ...,
  // ".idx" or ".gz"; else "".
  std::string ending;
  std::string advice;  // how to make a file of it that can be read; "" if it can be, or nobody knows
};

// A folder is told too if it is a store of arrays (Zarr). Error(io) for what is neither a file nor a folder.
FileKind file_kind(const std::string& path);
FileKind file_kind(const Source& source);

// The ending by which a file is read: that of its kind, "" if that is known and not read here. That of its name if its
// bytes are not known or cannot be read, so that the reader of the format says what is wrong with it.
std::string reading_ending(const std::string& path);

}  // namespace convssm::io
