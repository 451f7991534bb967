// SPDX-License-Identifier: MIT
#include "backend/cuda/step_graph.h"

#include "base/check.h"

namespace snapkv::cuda {
namespace {

constexpr size_t kMaxSteps = 64;  // shapes that are kept

}  // namespace

void StepGraphs::clear() {
  if (steps_.empty()) return;
  context_.synchronize();
  destroy();
}

StepGraphs::~StepGraphs() {
  if (steps_.empty()) return;
  // Fails without harm where a static object outlives the driver.
  cudaStreamSynchronize(context_.stream());
  destroy();
}

void StepGraphs::destroy() {
  for (auto& [shape, step] : steps_) {
    if (step.graph != nullptr) cudaGraphExecDestroy(step.graph);
    if (step.sent != nullptr) cudaEventDestroy(step.sent);
  }
  steps_.clear();
}

void StepGraphs::begin_arguments(Step& step) {
  if (!step.device) {
    step.device = context_.allocate(step.argument_bytes, "arguments of a decode step");
    step.host = Context::allocate_pinned(step.argument_bytes, "arguments of a decode step");
    check(cudaEventCreateWithFlags(&step.sent, cudaEventDisableTiming), "cudaEventCreate");
  } else {
    check(cudaEventSynchronize(step.sent), "cudaEventSynchronize");
  }
  context_.begin_arguments(step.device, step.host);
}

void StepGraphs::begin(uint64_t shape) {
  SNAPKV_CHECK(mode_ == Mode::none);
  if (memory_ != context_.memory_generation() || steps_.size() > kMaxSteps) clear();
  memory_ = context_.memory_generation();
  current_ = &steps_[shape];
  mode_ = current_->argument_bytes == 0 ? Mode::plain
          : current_->graph == nullptr  ? Mode::record
                                        : Mode::replay;
  if (mode_ == Mode::plain) {
    put_before_ = context_.bytes_put();
    return;
  }
  begin_arguments(*current_);
  if (mode_ == Mode::record) {
    check(cudaStreamBeginCapture(context_.stream(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  } else {
    context_.skip_launches(true);
  }
}

void StepGraphs::end() {
  SNAPKV_CHECK(mode_ != Mode::none);
  const Mode mode = mode_;
  mode_ = Mode::none;
  Step& step = *current_;
  if (mode == Mode::plain) {
    step.argument_bytes = context_.bytes_put() - put_before_;
    return;
  }
  const size_t n_bytes = context_.end_arguments();
  if (mode == Mode::record) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(context_.stream(), &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&step.graph, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
  } else {
    context_.skip_launches(false);
  }
  check(cudaMemcpyAsync(step.device.data(), step.host.data(), n_bytes, cudaMemcpyHostToDevice,
                        context_.stream()),
        "cudaMemcpyAsync");
  check(cudaEventRecord(step.sent, context_.stream()), "cudaEventRecord");
  check(cudaGraphLaunch(step.graph, context_.stream()), "cudaGraphLaunch");
}

void StepGraphs::cancel() {
  const Mode mode = mode_;
  mode_ = Mode::none;
  if (mode == Mode::none || mode == Mode::plain) return;
  context_.end_arguments();
  context_.skip_launches(false);
  if (mode == Mode::record) {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(context_.stream(), &graph) == cudaSuccess) cudaGraphDestroy(graph);
  }
}

}  // namespace snapkv::cuda
