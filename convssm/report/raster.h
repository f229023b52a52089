// SVG documents as pixels, by librsvg and cairo.
#pragma once

#include <string>

#include "convssm/io/png.h"

namespace convssm::report {

// The rules of pictures: letters, the colours c0 ... c7 of the page in its light form, lines of charts.
extern const char* const picture_style;

// An SVG element of this size with the rules and a white ground around `elements`.
std::string svg_document(int width, int height, const std::string& elements);

// The document scaled to a picture of this size, RGB.
io::Image rasterize(const std::string& svg, int width, int height);

// How wide a text of 12 units is, about.
double text_width(const std::string& text);

}  // namespace convssm::report
