// An order is the ranking of uniform numbers of the clip. Chunks differ by one token at most, the longer ones first.
#include "convssm/models/teco/draft_and_revise.h"

#include <ATen/ATen.h>

#include "convssm/models/clip_random.h"

namespace convssm::models {

at::Tensor draft_and_revise(at::Tensor& position, int64_t n, int64_t hidden, const DraftOptions& options,
                            const PlaceLogits& logits) {
  at::Tensor tokens = at::full({position.size(0), n}, hidden, position.options());
  for (int64_t round = 0; round <= options.rounds; ++round) {
    const int64_t chunks = std::min(round == 0 ? options.draft : options.revise, n);
    const at::Tensor order = draw_uniform(position, {n}).argsort(int64_t{1}, false);
    for (int64_t c = 0, begin = 0; c < chunks; ++c) {
      const int64_t count = n / chunks + (c < n % chunks ? 1 : 0);
      const at::Tensor places = order.narrow(1, begin, count);
      tokens = tokens.scatter(1, places, hidden);
      const at::Tensor said = logits(tokens, places);  // [B,c,K]
      const at::Tensor drawn = draw_codes(position, said.transpose(1, 2).unsqueeze(3), options.sampling).squeeze(2);
      tokens = tokens.scatter(1, places, drawn);
      begin += count;
    }
  }
  return tokens;
}

}  // namespace convssm::models
