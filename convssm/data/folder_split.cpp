// Splitting by lots. Sorted by lot, the clips of the splits are three ranges: the fractions say where they end, and where
// that leaves a split empty the ends move by as little as it takes.
#include "convssm/data/folder_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace convssm::data {
namespace {

// The last `fraction` of `whole` frames of the only training clip that is left go to another split.
std::string cut_time(ClipRef& train, std::vector<ClipRef>& other, double fraction, int64_t whole, const char* purpose) {
  const auto kept = static_cast<int64_t>(static_cast<double>(whole) * fraction);
  if (kept == 0 || kept >= train.frames) {
    return fmt::format("nothing for {}: {} of one clip of {} frames is too little", purpose, fraction, whole);
  }
  const bool before_others = train.frames < whole;
  train.frames -= kept;
  other.push_back({train.file, train.row, train.first + train.frames, kept});
  if (before_others) return fmt::format("the {} frames before them are for {}", kept, purpose);
  return fmt::format("one clip to share: its last {} of {} frames are for {}", kept, whole, purpose);
}

int64_t frames_of(const std::vector<ClipRef>& clips) {
  int64_t all = 0;
  for (const ClipRef& clip : clips) all += clip.frames;
  return all;
}

// The last `count` frames of the clips, which are taken out of them; in their order.
std::vector<ClipRef> take_end(std::vector<ClipRef>& clips, int64_t count) {
  std::vector<ClipRef> taken;
  while (count > 0 && !clips.empty()) {
    ClipRef& last = clips.back();
    const int64_t some = std::min(count, last.frames);
    last.frames -= some, count -= some;
    taken.insert(taken.begin(), {last.file, last.row, last.first + last.frames, some});
    if (last.frames == 0) clips.pop_back();
  }
  return taken;
}

// How many of `count` clips draw lots below `end`.
int64_t lots_below(const std::vector<double>& sorted, double end) {
  return std::ranges::lower_bound(sorted, end) - sorted.begin();
}

}  // namespace

std::vector<std::string> split_time(SplitClips& clips, double test_fraction, double valid_fraction, int64_t gap) {
  std::vector<std::string> notes;
  const int64_t whole = frames_of(clips.train);
  for (const auto& [other, fraction, purpose] :
       {std::tuple(&clips.test, test_fraction, "testing"), {&clips.valid, valid_fraction, "validation"}}) {
    if (fraction <= 0) continue;
    const auto count = static_cast<int64_t>(static_cast<double>(whole) * fraction);
    if (count < 2 || count + gap >= frames_of(clips.train)) {
      notes.push_back(fmt::format("nothing for {}: {} of {} frames{} is too little", purpose, fraction, whole,
                                  gap > 0 ? fmt::format(" with a gap of {}", gap) : ""));
      continue;
    }
    *other = take_end(clips.train, count);
    take_end(clips.train, gap);
    notes.push_back(fmt::format("the last {} frames of {} are for {}{}", count,
                                purpose == std::string("testing") ? "all" : "the others", purpose,
                                gap > 0 ? fmt::format(", {} before them for nothing", gap) : ""));
    std::erase_if(*other, [](const ClipRef& clip) { return clip.frames < 2; });
  }
  std::erase_if(clips.train, [](const ClipRef& clip) { return clip.frames < 2; });
  return notes;
}

std::vector<std::string> split_clips(SplitClips& clips, double test_fraction, double valid_fraction,
                                     const std::function<double(const ClipRef&)>& lot) {
  std::vector<std::string> notes;
  const auto count = static_cast<int64_t>(clips.train.size());
  const bool want_test = test_fraction > 0, want_valid = valid_fraction > 0;
  if (count == 0 || (!want_test && !want_valid)) return notes;
  std::vector<double> sorted;
  for (const ClipRef& clip : clips.train) sorted.push_back(lot(clip));
  std::ranges::sort(sorted);

  // Training keeps a clip, testing comes before validation.
  const int64_t for_test = want_test && count > 1 ? std::clamp<int64_t>(lots_below(sorted, test_fraction), 1,
                                                                        std::max<int64_t>(1, count - 1 - want_valid))
                                                  : 0;
  const int64_t left = count - for_test;
  const int64_t for_valid =
      want_valid && left > 1
          ? std::clamp<int64_t>(lots_below(sorted, test_fraction + valid_fraction) - for_test, 1, left - 1)
          : 0;
  std::vector<ClipRef> all;
  all.swap(clips.train);
  for (const ClipRef& clip : all) {
    const int64_t rank = lots_below(sorted, lot(clip));
    (rank < for_test ? clips.test : rank < for_test + for_valid ? clips.valid : clips.train).push_back(clip);
  }
  if (for_test > 0) {
    notes.push_back(fmt::format("{} of {} clips are for testing, by a hash of their names", for_test, count));
  }
  if (for_valid > 0) {
    notes.push_back(fmt::format("{} of {} clips are for validation, by a hash of their names", for_valid, count));
  }
  if (clips.train.size() == 1) {
    const int64_t whole = clips.train[0].frames;
    const auto cut = [&](std::vector<ClipRef>& other, double fraction, const char* purpose) {
      notes.push_back(cut_time(clips.train[0], other, fraction, whole, purpose));
    };
    if (want_test && for_test == 0) cut(clips.test, test_fraction, "testing");
    if (want_valid && for_valid == 0) cut(clips.valid, valid_fraction, "validation");
  }
  return notes;
}

}  // namespace convssm::data
