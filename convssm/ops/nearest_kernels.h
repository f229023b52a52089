// The nearest row of a table for each of many rows: scores and choice in one pass, nothing in between is stored.
#pragma once

#include <cstdint>

namespace convssm::ops {

// argmax_j x . table_j + bias_j, the first of equal ones: with bias_j = -|table_j|^2 / 2 the nearest by Euclidean distance.
struct NearestRows {
  int64_t rows, codes, features;
  const float* x;      // [rows,features]
  const float* table;  // [codes,features]
  const float* bias;   // [codes]
  int64_t* chosen;     // [rows]
  float* scratch;      // nearest_scratch() floats
};

int64_t nearest_scratch(int64_t rows, int64_t features);

void nearest_rows(const NearestRows& problem);

}  // namespace convssm::ops
