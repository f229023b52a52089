// What the rows of a batch carry from step to step (train.carry_state): the state after the window of the last step, cut from its
// graph, with which the row begins the next one. Each row has its own, for rows may begin a recording at different times.
// Rows are run together whose states can stand in one batch: those that have none, and those whose states have the same
// sizes and, in tensors that are of no row, the same numbers. No core has to know of it, and every core whose law
// holds gives the numbers of the whole recording.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "convssm/io/safetensors.h"
#include "convssm/models/model.h"

namespace convssm::train {

class CarriedStates {
 public:
  struct Group {
    std::vector<int64_t> rows;  // of the batch
    models::State start;
  };

  explicit CarriedStates(int64_t rows) : now_(static_cast<size_t>(rows)), next_(static_cast<size_t>(rows)) {}

  // Rows [begin,end) in the groups that can run together, in the order of their first rows; what a row that `begins`
  // has carried is left behind.
  std::vector<Group> groups(int64_t begin, int64_t end, const std::vector<bool>& begins) const;

  void keep(const std::vector<int64_t>& rows, const models::State& after);  // of a step that is not done yet
  void commit();                                                            // it is done
  void forget();                                                            // its numbers could not be used

  std::vector<io::LazyArray> arrays() const;                      // `carried.<row>.<name in the state>`
  void load(const io::SafetensorsFile& file, at::Device device);  // Error(data) if these are not states of a row each

 private:
  std::vector<models::State> now_, next_;  // of a row each
};

}  // namespace convssm::train
