// A grid of n points from a to b is int(a + i (b - a) / (n - 1)), as the published schemes have it; points that fall on the same
// frame are one.
#include "convssm/models/latent_fdm/schemes.h"

#include <algorithm>

#include "convssm/base/error.h"

namespace convssm::models::latent_fdm {
namespace {

FrameNumbers grid(double from, double to, int64_t count) {
  FrameNumbers numbers;
  for (int64_t i = 0; i < count; ++i) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    const auto number = static_cast<int64_t>(from + share * (to - from));
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
  }
  return numbers;
}

bool contains(const FrameNumbers& sorted, int64_t number) { return std::ranges::binary_search(sorted, number); }

// The last `count` of the finished frames below `below`.
FrameNumbers last_below(const FrameNumbers& finished, int64_t below, int64_t count) {
  const auto end = std::ranges::lower_bound(finished, below);
  const int64_t there = end - finished.begin();
  return {end - std::min(count, there), end};
}

FrameNumbers following(const FrameNumbers& finished, int64_t count) {
  FrameNumbers numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(finished.back() + 1 + i);
  return numbers;
}

Stage autoreg(const SchemeOptions& o, const FrameNumbers& finished, int64_t most) {
  const int64_t after = finished.back() + 1;
  return {last_below(finished, after, o.frames - o.drawn), following(finished, std::min(o.drawn, most))};
}

Stage long_range(const SchemeOptions& o, const FrameNumbers& finished, int64_t begin, int64_t most) {
  const int64_t room = o.frames - o.drawn, after = finished.back() + 1;
  const FrameNumbers recent = last_below(finished, after, room / 2);
  FrameNumbers observed = last_below(finished, std::min(begin, recent.empty() ? after : recent.front()),
                                     room - static_cast<int64_t>(recent.size()));
  observed.insert(observed.end(), recent.begin(), recent.end());
  return {observed, following(finished, std::min(o.drawn, most))};
}

void require_there(const FrameNumbers& finished, const FrameNumbers& wanted) {
  for (const int64_t number : wanted) {
    if (contains(finished, number)) continue;
    fail(ErrorKind::data,
         "the state has no frame {}, which hierarchy-2 looks at: it was made with another sampling.scheme or "
         "sampling.horizon; start from the context",
         number);
  }
}

// The frames between the drawn ones, as many after them as before, and more where one side has fewer.
FrameNumbers around(const FrameNumbers& finished, const FrameNumbers& latent, int64_t room) {
  const auto low = std::ranges::lower_bound(finished, latent.front()),
             high = std::ranges::lower_bound(finished, latent.back());
  const int64_t before = low - finished.begin(), after = finished.end() - high, free = room - (high - low);
  const int64_t taken_after = std::min(after, free / 2), taken_before = std::min(before, free - taken_after);
  return {low - taken_before, high + taken_after};
}

Stage hierarchy(const SchemeOptions& o, const FrameNumbers& finished, int64_t begin) {
  const int64_t origin = hierarchy_origin(o, begin), end = hierarchy_end(o, begin), room = o.frames - o.drawn;
  if (finished.back() < begin) {
    Stage first{grid(static_cast<double>(origin), static_cast<double>(begin) - 0.001, room),
                grid(static_cast<double>(begin), static_cast<double>(end) - 0.001, o.drawn)};
    require_there(finished, first.observed);
    return first;
  }
  FrameNumbers missing;
  for (int64_t number = begin; number < end && static_cast<int64_t>(missing.size()) < o.drawn; ++number) {
    if (!contains(finished, number)) missing.push_back(number);
  }
  for (; missing.size() > 1; missing.pop_back()) {  // at least two frames beside those between
    const int64_t between = std::ranges::count_if(
        finished, [&](int64_t number) { return number > missing.front() && number < missing.back(); });
    if (o.frames - static_cast<int64_t>(missing.size()) - between >= 2) break;
  }
  if (missing.empty()) return {};
  return {around(finished, missing, o.frames - static_cast<int64_t>(missing.size())), missing};
}

}  // namespace

Scheme parse_scheme(const std::string& text) {
  for (const Scheme scheme : {Scheme::autoreg, Scheme::long_range, Scheme::hierarchy}) {
    if (text == name(scheme)) return scheme;
  }
  fail(ErrorKind::usage, "[model.sampling] scheme must be autoreg, long-range or hierarchy-2, got '{}'", text);
}

const char* name(Scheme scheme) {
  return scheme == Scheme::autoreg ? "autoreg" : scheme == Scheme::long_range ? "long-range" : "hierarchy-2";
}

int64_t hierarchy_origin(const SchemeOptions& o, int64_t begin) {
  return begin < o.horizon ? 0 : begin - o.horizon / 2;
}

int64_t hierarchy_end(const SchemeOptions& o, int64_t begin) {
  const int64_t end = hierarchy_origin(o, begin) + o.horizon;
  return o.until > 0 ? std::min(end, o.until) : end;
}

Stage next_stage(const SchemeOptions& o, const FrameNumbers& finished, int64_t begin, int64_t most) {
  if (o.scheme == Scheme::hierarchy) return hierarchy(o, finished, begin);
  return o.scheme == Scheme::autoreg ? autoreg(o, finished, most) : long_range(o, finished, begin, most);
}

int64_t first_needed(const SchemeOptions& o, int64_t number, int64_t begin) {
  if (o.scheme != Scheme::hierarchy) return std::max<int64_t>(number - (o.frames - o.drawn), 0);
  return std::min(hierarchy_origin(o, begin), hierarchy_origin(o, number));
}

}  // namespace convssm::models::latent_fdm
