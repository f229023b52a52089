// Where a walker is and how it moves, in whole numbers: 1/65536 of a cell (or block) and turns of 15 degrees. A step and its
// reverse cancel exactly, so a walk that comes back is at the very place, and its frames are the same bytes.
#pragma once

#include <cstdint>

namespace convssm::worlds {

inline constexpr int64_t unit = int64_t{1} << 16;  // of a cell
inline constexpr int headings = 24;                // of a full turn

// x grows to the east, y to the south. Heading 0 looks east, 6 south, 12 west, 18 north: a turn to the right is +1.
struct Pose {
  int64_t x = 0, y = 0;
  int heading = 0;
  bool operator==(const Pose&) const = default;
};

struct Offset {
  int64_t x = 0, y = 0;
};

inline int wrap_heading(int heading) { return ((heading % headings) + headings) % headings; }

// Of a heading; sines of opposite headings are opposite numbers, those of 0 and 180 degrees are 0.
double cosine(int heading);
double sine(int heading);

// In cells, and radians.
inline double cells(int64_t position) { return static_cast<double>(position) / static_cast<double>(unit); }
double radians(int heading);

// Straight ahead.
Offset ahead(int heading, double length);

// Along a circle of this radius while turning by one heading: to the right (turn = 1) or to the left (-1). The steps of a
// quarter add up to exactly (radius, radius).
Offset along_arc(int heading, int turn, double radius);

}  // namespace convssm::worlds
