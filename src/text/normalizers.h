// SPDX-License-Identifier: MIT
// The normalizers of a tokenizer.json: what happens to a text before it is cut into words.
// JsonTokenizer uses them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/json_file.h"

namespace snapkv {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text`, valid UTF-8 and not empty, normalized.
  virtual std::string apply(std::string_view text) const = 0;

  /// nullptr for null. Throws Error{kBadModel} naming the field, and the types that are supported
  /// where this one is not.
  static std::unique_ptr<Normalizer> from_json(const JsonField& field);
};

}  // namespace snapkv
