// SPDX-License-Identifier: MIT
// Plain loops: the readable specification of the ops, and the oracle of every op test.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace snapkv::ref {

std::unique_ptr<Backend> make_backend();

}  // namespace snapkv::ref
