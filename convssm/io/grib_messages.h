// Where the fields of a GRIB file are, editions 1 and 2: messages one after the other, each in sections that say their length. What
// the numbers in them mean is not known here (io/grib_keys.h); what is not found here is never handed to eccodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convssm/io/source.h"

namespace convssm::io {

struct GribField {
  struct Piece {
    uint64_t offset = 0, length = 0;
  };
  uint64_t offset = 0;             // of its message
  std::vector<Piece> pieces = {};  // of the file, which together are a message of this field alone
};

struct GribHeader {
  std::string message = {};  // of the field, without its values
  std::string grid = {};     // the section of it that describes the grid
  std::string same = {};     // what fields have in common that differ in no more than their time and values
  int64_t time = 0;          // of the analysis or the start of the forecast, in seconds since 1970-01-01
};

// Calls `take` with every field, in the order of the file. FormatError for a message that is damaged or cut off, and for bytes between
// messages that are neither zeros nor text (a header of a bulletin).
void for_each_grib_field(const Source& source, const std::function<void(GribField, const GribHeader&)>& take);

// The message of a field with its values. Error(data) if it is above the limit of base/file_memory.h.
std::string grib_message(const Source& source, const GribField& field);

}  // namespace convssm::io
