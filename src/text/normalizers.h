// SPDX-License-Identifier: MIT
// The normalizers of a tokenizer.json: what is done to a text before it is cut into words.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/json_file.h"

namespace snapkv {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Returns `text`, which is valid UTF-8 and not empty, normalized.
  virtual std::string apply(std::string_view text) const = 0;

  /// Returns nullptr for null. Throws Error{kBadModel} naming the field, and the supported types if
  /// this one is not supported.
  static std::unique_ptr<Normalizer> from_json(const JsonField& field);
};

}  // namespace snapkv
