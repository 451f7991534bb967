// SPDX-License-Identifier: MIT
// Ctrl-C, SIGTERM and SIGHUP: the first one asks the running command to stop cleanly, with its
// summary and complete files; the second one kills it, or a later one if the command goes on after
// Ctrl-C. A mapped model file that shrinks ends the program with a message and exit code 3.
#pragma once

namespace snapkv::cli {

/// Catches SIGINT, SIGTERM and SIGHUP (unless the parent had them ignored, as nohup does) and
/// SIGBUS. Ignores SIGPIPE and SIGXFSZ, so that writing to a closed pipe or beyond a limit is an
/// error that gets reported.
void install_signal_handlers();

/// Whether one of these signals has arrived.
bool interrupted();
/// Forgets a Ctrl-C, so that a command that stopped its work can go on. Returns false when another
/// signal has arrived, which ends the command.
bool forget_interrupt();
/// Sets how many signals kill the process; 2 at the start.
void set_signals_that_kill(int n);
/// The name of the signal, as people know it: "Ctrl-C", "SIGTERM", "SIGHUP".
const char* interruption();
/// The exit code of a run that the signal stopped, as in shells: 128 + its number (130, 143, 129).
int interrupted_exit_code();

}  // namespace snapkv::cli
