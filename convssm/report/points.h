// The points of a curve, and fewer of them for a long one: a page shows some hundred columns, a log may have 300,000 lines.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convssm::report {

struct Point {
  double x, y;  // y may be NaN: a gap
};

struct Curve {
  std::string name;
  std::vector<Point> points;  // x ascends
};

// At most 2 * buckets + 2 points: the first, the last, and the lowest and the highest of each of `buckets` equal parts of
// the range of x, in their order, so that no spike is lost. A part without a finite value keeps one gap. Short curves are returned as they are.
std::vector<Point> min_max(const std::vector<Point>& points, size_t buckets);

// At most `buckets` points: the means of the finite values of equal parts. Short curves are returned as they are.
std::vector<Point> means(const std::vector<Point>& points, size_t buckets);

size_t count_not_finite(const std::vector<Point>& points);

}  // namespace convssm::report
