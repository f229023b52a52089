// Sets of surfaces as bits, one row for each frame; the search runs back from the newest frame and ends at the first hit.
#include "convssm/worlds/revisit.h"

namespace convssm::worlds {
namespace {

constexpr int64_t kLeastShare = 256;

int64_t all_rays(const Sight& sight) {
  int64_t rays = 0;
  for (const Surface& surface : sight) rays += surface.rays;
  return rays;
}

}  // namespace

RevisitFinder::RevisitFinder(int64_t surfaces, const RevisitOptions& options)
    : options_(options), words_(static_cast<size_t>((surfaces + 63) / 64)) {}

double RevisitFinder::overlap(const Sight& sight, int64_t rays, int64_t frame) const {
  const uint64_t* set = sets_.data() + static_cast<size_t>(frame) * words_;
  int64_t shared = 0;
  for (const Surface& s : sight) shared += ((set[s.id / 64] >> (s.id % 64)) & 1) != 0 ? s.rays : 0;
  return static_cast<double>(shared) / static_cast<double>(rays);
}

int64_t RevisitFinder::add(const Sight& sight) {
  const int64_t t = frames_++, rays = all_rays(sight);
  sets_.resize(static_cast<size_t>(frames_) * words_);
  for (const Surface& s : sight) {
    if (kLeastShare * s.rays >= rays) sets_[static_cast<size_t>(t) * words_ + s.id / 64] |= uint64_t{1} << (s.id % 64);
  }
  if (rays == 0) return -1;
  bool out_of_view = false;
  for (int64_t s = t - 1; s >= 0; --s) {
    const double shared = overlap(sight, rays, s);
    if (out_of_view && s <= t - options_.gap && shared >= options_.overlap) return s;
    out_of_view = out_of_view || shared < options_.overlap / 2;
  }
  return -1;
}

}  // namespace convssm::worlds
