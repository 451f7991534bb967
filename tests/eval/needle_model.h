// SPDX-License-Identifier: MIT
// The embedded model, and configurations with which it answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "snapkv/engine.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {

inline std::shared_ptr<const Model> needle_model() { return test::load_model("needle"); }

inline SessionOptions configuration(const std::string& policy, int64_t budget) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = budget;
  options.kv.window_size = 16;
  if (policy == "snapkv") options.kv.params["kernel_size"] = 15;
  return options;
}

}  // namespace snapkv::eval
