// SPDX-License-Identifier: MIT
// The end of a program that gets no memory where C++ allows no exception: in functions of libraries
// that may not throw, and while another exception is on its way. Called by main.cpp.
#pragma once

namespace snapkv::cli {

/// From here on such an end is the message "out of memory" and kDoesNotFit's exit code, at once,
/// instead of an abort. Where C++ allows exceptions std::bad_alloc is thrown as ever.
void end_cleanly_without_memory();

}  // namespace snapkv::cli
