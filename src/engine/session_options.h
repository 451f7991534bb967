// SPDX-License-Identifier: MIT
// The options of a session, checked, with the policy that they name.
#pragma once

#include <memory>

#include "policy/policy.h"
#include "snapkv/engine.h"

namespace snapkv {

struct CheckedOptions {
  SessionOptions options;  // as resolve_options() returns them
  std::unique_ptr<Policy> policy;
};

/// Throws as resolve_options() does.
CheckedOptions check_session_options(const SessionOptions& options, const ModelInfo& info);

}  // namespace snapkv
