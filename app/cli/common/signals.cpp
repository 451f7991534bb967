// SPDX-License-Identifier: MIT
#include "cli/common/signals.h"

#include <signal.h>

namespace snapkv::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t g_signal = 0;

void on_interrupt(int number) {
  g_signal = number;
  for (const int each : kSignals) signal(each, SIG_DFL);  // the next one has its default effect
}

}  // namespace

void install_signal_handlers() {
  for (const int each : kSignals) {
    struct sigaction previous = {};
    sigaction(each, nullptr, &previous);
    if (previous.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = on_interrupt;  // without SA_RESTART: a read that waits for input ends
    sigemptyset(&action.sa_mask);
    sigaction(each, &action, nullptr);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

bool interrupted() { return g_signal != 0; }

const char* interruption() {
  switch (g_signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "Ctrl-C";
  }
}

int interrupted_exit_code() { return 128 + (interrupted() ? g_signal : SIGINT); }

}  // namespace snapkv::cli
