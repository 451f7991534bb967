// SPDX-License-Identifier: MIT
// What one layer remembers, as a file holds it (docs/session-file.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace snapkv {

/// Takes the next bytes of a state that is being saved.
using ByteSink = std::function<void(std::span<const std::byte>)>;

struct SavedState {
  std::span<const std::byte> bytes;  // in host memory, aligned as a Buffer
  int64_t n_tokens = 0;              // tokens seen; the last one's position is one less
  std::string name;                  // file and layer, for messages: "'a.kv': layer 3"
};

}  // namespace snapkv
