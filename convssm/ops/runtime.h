// What a program does once before it computes: threads, denormals, memory.
// A library user who wants the measured speeds calls start_runtime() at the top of main.
#pragma once

#include <string>

#include "convssm/ops/allocator.h"
#include "convssm/ops/conv_algorithm.h"

namespace convssm::ops {

struct RuntimeOptions {
  int threads = 0;          // 0: OMP_NUM_THREADS if set, else all cores this process may use
  bool keep_memory = true;  // keep large tensor blocks in huge pages (allocator.h)
  ConvAlgorithm convolution = ConvAlgorithm::automatic;
};

void start_runtime(const RuntimeOptions& options = {});

}  // namespace convssm::ops
