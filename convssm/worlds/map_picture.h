// Drawing on a map: dots, lines and the walker, an arrow.
#pragma once

#include "convssm/io/png.h"
#include "convssm/worlds/texture.h"

namespace convssm::worlds {

io::Image blank_picture(int64_t side, Color color);
void fill_box(io::Image& image, double left, double top, double right, double bottom, Color color);
void draw_line(io::Image& image, double x0, double y0, double x1, double y1, double thickness, Color color);
void draw_walker(io::Image& image, double x, double y, int heading, double size, Color color);

}  // namespace convssm::worlds
