// Grid files for the tests of fields: t2m, packed as i16 with a fill value, and wind u on two levels, hour after hour.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "convssm/io/grid_writer.h"

namespace convssm::data::testing {

struct FieldsToWrite {
  std::vector<double> hours;  // since 2019-03-01
  int64_t height = 4, width = 6;
  std::vector<int64_t> missing = {};  // frames of which pixel [0,0] was not measured
  std::vector<int64_t> blank = {};    // and of which no pixel was
  double latitude = 58;               // of the first row
};

// t2m of hour h at row r, column c: 270 + h + r / 10 + c / 100; u at level l: h - l / 1000 + r.
inline float t2m_at(double hour, int64_t row, int64_t column) {
  return static_cast<float>(270 + hour + 0.1 * static_cast<double>(row) + 0.01 * static_cast<double>(column));
}

inline void write_fields(const std::string& path, const FieldsToWrite& w) {
  using io::Array;
  const auto text = [](const char* value) { return io::GridAttribute{value, {}}; };
  const auto T = static_cast<int64_t>(w.hours.size());
  io::GridLayout layout{.dimensions = {{"time", T}, {"level", 2}, {"lat", w.height}, {"lon", w.width}},
                        .records = "time"};
  layout.variables = {
      {.name = "time",
       .dtype = io::DType::f64,
       .dimensions = {"time"},
       .attributes = {{"units", text("hours since 2019-03-01")}}},
      {.name = "lat", .dtype = io::DType::f64, .dimensions = {"lat"}, .attributes = {{"units", text("degrees_north")}}},
      {.name = "lon", .dtype = io::DType::f64, .dimensions = {"lon"}, .attributes = {{"units", text("degree_east")}}},
      {.name = "level", .dtype = io::DType::f64, .dimensions = {"level"}, .attributes = {{"positive", text("down")}}},
      {.name = "orography", .dtype = io::DType::f32, .dimensions = {"lat", "lon"}},
      {.name = "t2m",
       .dtype = io::DType::i16,
       .dimensions = {"time", "lat", "lon"},
       .attributes = {{"units", text("K")},
                      {"scale_factor", {"", {0.01}}},
                      {"add_offset", {"", {300}}},
                      {"_FillValue", {"", {-32768}}}}},
      {.name = "u",
       .dtype = io::DType::f32,
       .dimensions = {"time", "level", "lat", "lon"},
       .attributes = {{"units", text("m s-1")}}}};
  auto out = io::open_grid_writer(path, layout);
  const auto axis = [&](const char* name, double first, double step, int64_t count) {
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(first + step * static_cast<double>(i));
    out->write(name, io::make_array({count}, values));
  };
  axis("lat", w.latitude, -0.25, w.height);
  axis("lon", -10, 0.25, w.width);
  out->write("level", io::make_array<double>({2}, {850.0, 500.0}));
  std::vector<float> heights;
  for (int64_t i = 0; i < w.height * w.width; ++i) heights.push_back(static_cast<float>(100 * i));
  out->write("orography", io::make_array({w.height, w.width}, heights));
  for (int64_t t = 0; t < T; ++t) {
    const double hour = w.hours[static_cast<size_t>(t)];
    std::vector<int16_t> packed;
    std::vector<float> wind;
    for (int64_t r = 0; r < w.height; ++r) {
      for (int64_t c = 0; c < w.width; ++c)
        packed.push_back(static_cast<int16_t>(std::lround((t2m_at(hour, r, c) - 300) * 100)));
    }
    for (const int64_t frame : w.missing) {
      if (frame == t) packed[0] = -32768;
    }
    for (const int64_t frame : w.blank) {
      if (frame == t) std::fill(packed.begin(), packed.end(), int16_t{-32768});
    }
    for (const double level : {850.0, 500.0}) {
      for (int64_t r = 0; r < w.height; ++r)
        wind.insert(wind.end(), static_cast<size_t>(w.width),
                    static_cast<float>(hour - level / 1000 + static_cast<double>(r)));
    }
    out->write("time", io::make_array<double>({1}, {hour}));
    out->write("t2m", io::make_array({1, w.height, w.width}, packed));
    out->write("u", io::make_array({1, 2, w.height, w.width}, wind));
  }
  out->close();
}

inline std::vector<double> hours_from(double first, int64_t count) {
  std::vector<double> hours;
  for (int64_t i = 0; i < count; ++i) hours.push_back(first + static_cast<double>(i));
  return hours;
}

}  // namespace convssm::data::testing
