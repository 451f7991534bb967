// SPDX-License-Identifier: MIT
// failure_kind(): the kind of failure that an exception means for its request.
#pragma once

#include <exception>
#include <new>

#include "server/generation.h"
#include "snapkv/error.h"

namespace snapkv::server {

inline Failure::Kind failure_kind(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return Failure::Kind::bad_request;
    case ErrorCode::kContextExceeded:
      return Failure::Kind::context_exceeded;
    case ErrorCode::kDoesNotFit:
      return Failure::Kind::does_not_fit;
    case ErrorCode::kCancelled:
      return Failure::Kind::cancelled;
    default:
      return Failure::Kind::internal;
  }
}

inline Failure::Kind failure_kind(const std::exception& e) {
  if (const auto* error = dynamic_cast<const Error*>(&e)) return failure_kind(error->code());
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return Failure::Kind::does_not_fit;
  return Failure::Kind::internal;
}

}  // namespace snapkv::server
