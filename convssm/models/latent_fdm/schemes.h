// In which order the frames of a future are drawn, and which finished frames each draw looks at. Plain lists of frame numbers:
// nothing here knows tensors. K frames go through the denoiser at once, at most S of them are drawn.
//   autoreg      the next S frames, after the last K - S
//   long-range   likewise, but half of the observed frames are the latest of the context
//   hierarchy-2  first S frames spread over what is to come, then the gaps between them from the earliest on
// A hierarchy has an end: `horizon` frames, of which the first are its context, or sooner where its actions end. Where it ends, or
// where a true frame comes, another begins: its context is everything before it if that is less than the horizon, and the last
// half of the horizon otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convssm::models::latent_fdm {

using FrameNumbers = std::vector<int64_t>;

enum class Scheme { autoreg, long_range, hierarchy };

Scheme parse_scheme(const std::string& text);  // "autoreg", "long-range", "hierarchy-2"
const char* name(Scheme scheme);

struct SchemeOptions {
  Scheme scheme = Scheme::autoreg;
  int64_t frames = 20;    // K
  int64_t drawn = 10;     // S, 1 .. K-1
  int64_t horizon = 300;  // of hierarchies
  int64_t until = 0;      // of hierarchies: they end before this frame if the horizon is later; 0: nothing says so
};

// What one draw looks at and what it makes; ascending and apart from each other.
struct Stage {
  FrameNumbers observed, latent;
};

// Where the hierarchy that begins after `begin` known frames has its first frame, and the number after its last.
int64_t hierarchy_origin(const SchemeOptions& options, int64_t begin);
int64_t hierarchy_end(const SchemeOptions& options, int64_t begin);

// The next draw. `finished` are the frames at hand, ascending; those below `begin` are the context; at most `most` frames are
// drawn. Of hierarchies: `begin` is the number of frames known when this one began, and `most` is not looked at.
// Error(data) if a frame that a hierarchy looks at is not at hand.
Stage next_stage(const SchemeOptions& options, const FrameNumbers& finished, int64_t begin, int64_t most);

// The first frame that any later draw may look at, beside the context of long-range, when `number` frames are given and any
// that were drawn ahead may yet be dropped.
int64_t first_needed(const SchemeOptions& options, int64_t number, int64_t begin);

}  // namespace convssm::models::latent_fdm
