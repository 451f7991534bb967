// SPDX-License-Identifier: MIT
// The list of policies. A new one: a file in this folder that defines make_<id>, and a line here.
#pragma once

#include <memory>

#include "policy/policy.h"

// X(id, name): `name` is what PolicyConfig::name says; make_<id> validates the configuration.
#define SNAPKV_POLICIES(X)                    \
  X(full, "full")                             \
  X(snapkv, "snapkv")                         \
  X(pyramidkv, "pyramidkv")                   \
  X(ada_snapkv, "ada-snapkv")                 \
  X(chunkkv, "chunkkv")                       \
  X(tova, "tova")                             \
  X(h2o, "h2o")                               \
  X(expected_attention, "expected-attention") \
  X(streaming_llm, "streaming-llm")           \
  X(knorm, "knorm")                           \
  X(keydiff, "keydiff")                       \
  X(random, "random")

namespace snapkv {

#define SNAPKV_DECLARE(id, name) std::unique_ptr<Policy> make_##id(const PolicyConfig& config);
SNAPKV_POLICIES(SNAPKV_DECLARE)
#undef SNAPKV_DECLARE

}  // namespace snapkv
