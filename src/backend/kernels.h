// SPDX-License-Identifier: MIT
// Kernels: what a backend implements, one method per op with the name, parameters and meaning that
// ops.def gives it. Only ops.cpp calls them, with arguments that it has validated.
#pragma once

#include "backend/ops.h"

namespace snapkv {

class Kernels {
 public:
  virtual ~Kernels() = default;

#define SNAPKV_OP(name, parameters, names) virtual void name parameters = 0;
#include "backend/ops.def"
};

}  // namespace snapkv
