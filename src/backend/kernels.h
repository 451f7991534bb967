// SPDX-License-Identifier: MIT
// Kernels: the methods that a backend implements, one per op, with the name, parameters and meaning
// given in ops.def. ops.cpp validates their arguments.
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
