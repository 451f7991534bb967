// SPDX-License-Identifier: MIT
// The ops of backend/ops.def as plain loops, accumulating in f64. Called by ref_backend.cpp.
#pragma once

#include "backend/ops.h"

namespace snapkv::ref {

#define SNAPKV_OP(name, parameters, names) void name parameters;
#include "backend/ops.def"

}  // namespace snapkv::ref
