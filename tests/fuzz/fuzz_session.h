// SPDX-License-Identifier: MIT
// The fuzz target for saved caches, for libFuzzer and for the replay in tests/engine.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::test {

/// The file with the checksums that its blocks and its table should have, as far as there are such.
std::vector<std::byte> sealed(std::vector<std::byte> bytes);

/// Parses the bytes as a saved cache: once as they are, and once with correct checksums, so that
/// the code behind the checks is reached. A file that fits `model` is then loaded, and a token is
/// decoded after it. Returns whether the second was a complete file. Exceptions other than Error
/// end the process.
bool read_hostile_session(std::span<const std::byte> bytes,
                          const std::shared_ptr<const Model>& model);

}  // namespace snapkv::test
