// SPDX-License-Identifier: MIT
// The list of policies. To add one, write a file in this folder that defines <id>_policy(), and add
// a line here.
#pragma once

#include "policy/definition.h"

#define SNAPKV_POLICIES(X) \
  X(full)                  \
  X(snapkv)                \
  X(snapkv_max)            \
  X(pyramidkv)             \
  X(ada_snapkv)            \
  X(chunkkv)               \
  X(tova)                  \
  X(h2o)                   \
  X(expected_attention)    \
  X(streaming_llm)         \
  X(knorm)                 \
  X(keydiff)               \
  X(lagkv)                 \
  X(kvzip)                 \
  X(random)

namespace snapkv {

#define SNAPKV_DECLARE(id) PolicyDefinition id##_policy();
SNAPKV_POLICIES(SNAPKV_DECLARE)
#undef SNAPKV_DECLARE

}  // namespace snapkv
