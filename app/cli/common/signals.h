// SPDX-License-Identifier: MIT
// Ctrl-C: the first one asks the running command to stop cleanly, the second one kills it. A model
// file that shrinks while it is mapped: a message and exit code 3.
#pragma once

namespace snapkv::cli {

/// Catches SIGINT (unless the parent had it ignored) and SIGBUS, and ignores SIGPIPE, so that
/// writing to a closed pipe is an error that gets reported. Called once by main.
void install_signal_handlers();

/// Whether Ctrl-C was pressed.
bool interrupted();

}  // namespace snapkv::cli
