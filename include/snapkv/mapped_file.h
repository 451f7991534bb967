// SPDX-License-Identifier: MIT
// Finds the model file that is mapped at an address. For programs that catch SIGBUS, which the
// system raises if a mapped file has become shorter or its disk fails, and its bytes are read.
#pragma once

namespace snapkv {

/// The path of the model file mapped at `address`, as it was given to Model::load(), or nullptr. It
/// takes no lock and allocates nothing, so a signal handler may call it. The text is valid as long
/// as the model that uses the file. The library itself installs no handler.
const char* mapped_file_at(const void* address) noexcept;

}  // namespace snapkv
