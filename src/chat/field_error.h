// SPDX-License-Identifier: MIT
// FieldError: an error in what a client has asked for, with the field that it is in.
#pragma once

#include <string>
#include <utility>

#include "snapkv/error.h"

namespace snapkv::chat {

/// Its code is kUsage.
class FieldError : public Error {
 public:
  FieldError(std::string name, const std::string& message)
      : Error(ErrorCode::kUsage, message), field(std::move(name)) {}
  std::string field;
};

}  // namespace snapkv::chat
