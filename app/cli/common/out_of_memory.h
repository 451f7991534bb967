// SPDX-License-Identifier: MIT
// Ends the program when memory runs out where C++ allows no exception: in library functions that
// may not throw, and while another exception is being handled.
#pragma once

namespace snapkv::cli {

/// From this call on, such a failure ends the program at once with the message "out of memory" and
/// kDoesNotFit's exit code, instead of an abort. Elsewhere std::bad_alloc is thrown as usual.
void end_cleanly_without_memory();

}  // namespace snapkv::cli
