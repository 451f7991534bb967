// SPDX-License-Identifier: MIT
// The kind and the message of the failure that an exception means for its request.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "server/file_error.h"
#include "server/request.h"
#include "snapkv/error.h"

namespace snapkv::server {

inline Failure::Kind failure_kind(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
    case ErrorCode::kBadModel:  // of the snapshot that the request continues
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

inline std::string failure_text(const std::exception& e) {
  const auto* error = dynamic_cast<const Error*>(&e);
  const bool is_of_file = error != nullptr && error->code() == ErrorCode::kBadModel;
  return is_of_file ? file_error_text(*error) : e.what();
}

}  // namespace snapkv::server
