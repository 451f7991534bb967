// SPDX-License-Identifier: MIT
// Which model file lies at an address: for programs that catch SIGBUS, which the system raises when
// a mapped file has become shorter, or its disk has failed, and its bytes are read.
#pragma once

namespace snapkv {

/// The path of the model file that is mapped at `address`, as it was given to Model::load(), or
/// nullptr. It takes no lock and allocates nothing, so a signal handler may call it; the text is
/// valid as long as the model that holds the file. The library installs no handler itself.
const char* mapped_file_at(const void* address) noexcept;

}  // namespace snapkv
