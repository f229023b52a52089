// min_max keeps the extremes of each column in their order, so spikes stay visible; means smooths. Columns are cut by x
// and not by count: logs of a resumed run are not evenly spaced.
#include "convssm/report/points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace convssm::report {
namespace {

// visit(points of the part) for each of the parts that has points.
template <class Visit>
void for_parts(const std::vector<Point>& points, size_t buckets, const Visit& visit) {
  const double first = points.front().x, width = (points.back().x - first) / static_cast<double>(buckets);
  size_t begin = 0;
  for (size_t bucket = 0; bucket < buckets && begin < points.size(); ++bucket) {
    const double limit = first + width * static_cast<double>(bucket + 1);
    size_t end = begin;
    const bool last = bucket + 1 == buckets;
    while (end < points.size() && (last || points[end].x < limit)) ++end;
    if (end > begin) visit(std::span(points).subspan(begin, end - begin));
    begin = end;
  }
}

bool is_finite(const Point& point) { return std::isfinite(point.y); }

Point gap(const Point& at) { return {at.x, std::numeric_limits<double>::quiet_NaN()}; }

}  // namespace

std::vector<Point> min_max(const std::vector<Point>& points, size_t buckets) {
  if (points.size() <= 2 * buckets) return points;
  std::vector<Point> out{points.front()};
  const auto add = [&](const Point& point) {
    if (point.x > out.back().x) out.push_back(point);
  };
  for_parts(points, buckets, [&](std::span<const Point> part) {
    const Point* low = nullptr;
    const Point* high = nullptr;
    for (const Point& point : part) {
      if (!is_finite(point)) continue;
      if (low == nullptr || point.y < low->y) low = &point;
      if (high == nullptr || point.y > high->y) high = &point;
    }
    if (low == nullptr) {
      add(gap(part.front()));
      return;
    }
    add(*std::min(low, high));
    add(*std::max(low, high));
  });
  add(points.back());
  return out;
}

std::vector<Point> means(const std::vector<Point>& points, size_t buckets) {
  if (points.size() <= buckets) return points;
  std::vector<Point> out;
  for_parts(points, buckets, [&](std::span<const Point> part) {
    Point sum{0, 0};
    double count = 0;
    for (const Point& point : part) {
      if (!is_finite(point)) continue;
      sum = {sum.x + point.x, sum.y + point.y};
      ++count;
    }
    out.push_back(count > 0 ? Point{sum.x / count, sum.y / count} : gap(part.front()));
  });
  return out;
}

size_t count_not_finite(const std::vector<Point>& points) {
  return static_cast<size_t>(std::count_if(points.begin(), points.end(), [](const Point& p) { return !is_finite(p); }));
}

}  // namespace convssm::report
