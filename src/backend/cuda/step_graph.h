// SPDX-License-Identifier: MIT
// StepGraphs: decode steps as CUDA graphs. The first step of a shape runs as it is, which gives
// scratch memory its size; the second is recorded; later ones only write their arguments, which go
// to the device in one copy, and launch what was recorded. Used by cuda_backend.cpp.
#pragma once

#include <cstdint>
#include <map>

#include "backend/cuda/context.h"

namespace snapkv::cuda {

class StepGraphs {
 public:
  explicit StepGraphs(Context& context) : context_(context) {}
  ~StepGraphs() { clear(); }
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  void begin(uint64_t shape);
  void end();
  /// Call it instead of end() after an error.
  void cancel();
  /// Forgets everything, because memory that was recorded has moved.
  void clear();

 private:
  struct Step {
    size_t argument_bytes = 0;  // of the first run; 0 before it
    cudaGraphExec_t graph = nullptr;
    Buffer device, host;         // of arguments
    cudaEvent_t sent = nullptr;  // until then `host` is being read
  };
  enum class Mode { none, plain, record, replay };

  void begin_arguments(Step& step);

  Context& context_;
  std::map<uint64_t, Step> steps_;
  Step* current_ = nullptr;
  Mode mode_ = Mode::none;
  size_t put_before_ = 0;
  uint64_t memory_ = 0;  // Context::memory_generation() of the recorded ones
};

}  // namespace snapkv::cuda
