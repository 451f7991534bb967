// SPDX-License-Identifier: MIT
// The fuzz target of saved caches. Shared by libFuzzer and the replay in tests/engine.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "snapkv/engine.h"

namespace snapkv::test {

/// Parses the bytes as a saved session, or as a file of uncompressed rows (KvPrefix::save) if they
/// begin as one, once as they are and once with the checksum that they should have, so that what
/// comes behind it is reached. A file of `model` is then loaded, and a token is decoded after it.
/// Whether the second was a whole file. Anything but Error ends the process.
bool read_hostile_session(std::span<const std::byte> bytes,
                          const std::shared_ptr<const Model>& model);

}  // namespace snapkv::test
