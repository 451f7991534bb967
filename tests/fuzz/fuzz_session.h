// SPDX-License-Identifier: MIT
// The fuzz target for saved caches, for libFuzzer and for the replay in tests/engine.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "snapkv/engine.h"

namespace snapkv::test {

/// Parses the bytes as a saved session, or as a file of uncompressed rows (KvPrefix::save) if they
/// begin like one: once as they are, and once with a correct checksum, so that the code behind the
/// check is reached. A file that fits `model` is then loaded, and a token is decoded after it.
/// Returns whether the second was a complete file. Exceptions other than Error end the process.
bool read_hostile_session(std::span<const std::byte> bytes,
                          const std::shared_ptr<const Model>& model);

}  // namespace snapkv::test
