// SPDX-License-Identifier: MIT
// Plain loops: the readable specification of ops.h and the oracle of every op test.
#pragma once

#include <memory>

#include "backend/kernels.h"

namespace snapkv::ref {

std::unique_ptr<Kernels> make_kernels();

}  // namespace snapkv::ref
