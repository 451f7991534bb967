// SPDX-License-Identifier: MIT
#include "cli/common/signals.h"

#include <signal.h>

namespace snapkv::cli {
namespace {

volatile sig_atomic_t g_interrupted = 0;

void on_interrupt(int) { g_interrupted = 1; }

}  // namespace

void install_signal_handlers() {
  struct sigaction previous = {};
  sigaction(SIGINT, nullptr, &previous);
  if (previous.sa_handler != SIG_IGN) {
    struct sigaction action = {};
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second Ctrl-C has its default effect
    sigaction(SIGINT, &action, nullptr);
  }
  signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return g_interrupted != 0; }

}  // namespace snapkv::cli
