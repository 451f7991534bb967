// SPDX-License-Identifier: MIT
// Ctrl-C, SIGTERM and SIGHUP: the first one asks the running command to stop cleanly, with its
// summary and whole files; the second one kills it, or a later one where a command
// goes on after Ctrl-C. A model file that shrinks while it is mapped: a
// message and exit code 3.
#pragma once

namespace snapkv::cli {

/// Catches SIGINT, SIGTERM and SIGHUP (unless the parent had them ignored, as nohup does) and
/// SIGBUS, and ignores SIGPIPE and SIGXFSZ, so that writing to a closed pipe or beyond a limit is
/// an error that gets reported. Called once by main.
void install_signal_handlers();

/// Whether one of them has come.
bool interrupted();
/// Forgets a Ctrl-C, so that a command that stopped what it was doing can go on. False when another
/// signal has come, which ends the command.
bool forget_interrupt();
/// How many signals it takes to kill the process; 2 at the start.
void set_signals_that_kill(int n);
/// Which one, as people know it: "Ctrl-C", "SIGTERM", "SIGHUP".
const char* interruption();
/// The exit code of a run that it stopped, as shells count: 128 + its number (130, 143, 129).
int interrupted_exit_code();

}  // namespace snapkv::cli
