// A chart as a picture of its own: title, legend and plot in one SVG, and as a PNG file for documents.
//   write_chart_png("docs/speed.png", {"speed", "Speed", "frames/s", "frames seen", Scale::logarithmic, lines});
#pragma once

#include <string>

#include "convssm/io/png.h"
#include "convssm/report/chart.h"

namespace convssm::report {

// A complete SVG document with a white ground. Error(usage) if no line has a finite value.
std::string chart_svg(const Chart& chart);

// The same as pixels, two for each unit of the SVG, and in a file that is written whole or not at all.
io::Image chart_image(const Chart& chart);
void write_chart_png(const std::string& path, const Chart& chart);

}  // namespace convssm::report
