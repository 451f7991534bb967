// SPDX-License-Identifier: MIT
// The ops of backend/ops.def as plain loops that accumulate in f64.
#pragma once

#include "backend/ops.h"

namespace snapkv::ref {

#define SNAPKV_OP(name, parameters, names) void name parameters;
#include "backend/ops.def"

}  // namespace snapkv::ref
