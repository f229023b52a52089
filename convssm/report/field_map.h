// Maps of fields side by side in one picture, in colours of one scale with its numbers beside them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convssm/io/png.h"

namespace convssm::report {

struct FieldMap {
  std::string name;            // above it
  std::vector<double> values;  // [height,width]; what is not finite is grey
};

struct FieldMaps {
  std::string title, units;
  int64_t height = 0, width = 0;
  std::vector<FieldMap> maps;
};

// From 0 to the largest value of all; two pixels for each unit of its letters. Error(usage) if values do not fit the size.
io::Image field_maps_image(const FieldMaps& maps);
void write_field_maps_png(const std::string& path, const FieldMaps& maps);

}  // namespace convssm::report
