// SPDX-License-Identifier: MIT
// StepGraphs: decode steps as CUDA graphs. The first step of a shape runs normally, which brings
// scratch memory to its size; the second is recorded; later ones only write their arguments, which
// go to the device in one copy, and launch the recording.
#pragma once

#include <cstdint>
#include <map>

#include "backend/cuda/context.h"

namespace snapkv::cuda {

class StepGraphs {
 public:
  explicit StepGraphs(Context& context) : context_(context) {}
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  void begin(uint64_t shape);
  void end();
  /// Call this instead of end() after an error.
  void cancel();
  /// Forgets all recordings, because memory that they use has moved.
  void clear();

 private:
  struct Step {
    size_t argument_bytes = 0;  // in the first run; 0 before it
    cudaGraphExec_t graph = nullptr;
    Buffer device, host;         // of arguments
    cudaEvent_t sent = nullptr;  // until it occurs, `host` is being read
  };
  enum class Mode { none, plain, record, replay };

  void begin_arguments(Step& step);
  void destroy();

  Context& context_;
  std::map<uint64_t, Step> steps_;
  Step* current_ = nullptr;
  Mode mode_ = Mode::none;
  size_t put_before_ = 0;
  uint64_t memory_ = 0;  // Context::memory_generation() of the recordings
};

}  // namespace snapkv::cuda
