// SPDX-License-Identifier: MIT
// PartialKernels: the base of a backend that implements some ops only. It overrides the methods of
// these; the reference computes the others, through copies in host memory, with a warning for each.
//
//   class MyKernels final : public PartialKernels {
//    public:
//     using PartialKernels::PartialKernels;
//     void add(const Tensor& x, const Tensor& y, float factor) override;
//   };
//
// pack() and project_packed() are implemented together or not at all, since the second reads what
// the first one wrote. A device that replays decode steps (Backend::begin_step) needs all ops that
// they make.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "backend/backend.h"
#include "backend/kernels.h"
#include "backend/partial/weight_copies.h"

namespace snapkv {

class PartialKernels : public Kernels {
 public:
  explicit PartialKernels(Backend& backend) : backend_(backend), weights_(backend) {}

  /// The backend's place_weights() calls this.
  void place_weights(std::span<const Tensor> weights) { weights_.place(weights); }

#define SNAPKV_OP(name, parameters, names) void name parameters override;
#include "backend/ops.def"

 protected:
  /// A weight (or bias) that an op was given, in device memory.
  Tensor on_device(const Tensor& weight) { return weights_.on_device(weight); }

 private:
  template <typename Op, typename... Arguments>
  void run_on_reference(const char* name, const Op& op, Arguments&... arguments);
  void warn_once(const char* op);

  Backend& backend_;
  WeightCopies weights_;
  std::mutex mutex_;
  std::set<std::string> warned_;  // the names of ops
};

}  // namespace snapkv
