// SPDX-License-Identifier: MIT
#include "cli/common/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "base/atomic_file.h"
#include "snapkv/error.h"
#include "snapkv/mapped_file.h"

namespace snapkv::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// A signal may arrive in any thread, while a second one reads these and a third gets another
// signal.
std::atomic<int> g_signal = 0;
std::atomic<int> g_count = 0;
std::atomic<int> g_that_kill = 2;
static_assert(std::atomic<int>::is_always_lock_free, "handlers may not wait");

void on_interrupt(int number) {
  if (g_signal == 0 || number != SIGINT) g_signal = number;
  if (++g_count < g_that_kill) return;
  remove_temporary_files();
  signal(number, SIG_DFL);
  raise(number);  // takes effect once unblocked; it is blocked while its handler runs
  sigset_t this_one;
  sigemptyset(&this_one);
  sigaddset(&this_one, number);
  pthread_sigmask(SIG_UNBLOCK, &this_one, nullptr);
  _exit(128 + number);  // signals do not end the first process of a container
}

void catch_signals() {
  for (const int each : kSignals) {
    struct sigaction previous = {};
    sigaction(each, nullptr, &previous);
    if (previous.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = on_interrupt;  // without SA_RESTART, a read that waits is interrupted
    sigemptyset(&action.sa_mask);
    sigaction(each, &action, nullptr);
  }
}

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) return;  // nowhere to report it to
}

// Does only what a handler may do: no allocation, no locks, no exit handlers.
void on_bus_error(int, siginfo_t* info, void*) {
  const char* path = mapped_file_at(info->si_addr);
  static std::atomic_flag reported = ATOMIC_FLAG_INIT;
  if (path != nullptr && reported.test_and_set()) {
    for (;;) pause();  // another thread is writing the message and will end the process
  }
  if (path == nullptr) {
    signal(SIGBUS, SIG_DFL);  // the failed read is repeated and then ends the process as usual
    return;
  }
  write_text("\nsnapkv: error: '");
  write_text(path);
  write_text(
      "' became shorter, or could not be read any more, while it was in use (--weights copy reads "
      "a model into memory at the start)\n");
  _exit(static_cast<int>(ErrorCode::kBadModel));
}

}  // namespace

void install_signal_handlers() {
  catch_signals();
  signal(SIGPIPE, SIG_IGN);
  struct sigaction bus = {};
  bus.sa_sigaction = on_bus_error;
  sigemptyset(&bus.sa_mask);
  bus.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &bus, nullptr);
  signal(SIGXFSZ, SIG_IGN);
}

bool interrupted() { return g_signal != 0; }

bool forget_interrupt() {
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);  // so that a signal that arrives now is not lost
  const bool forgotten = g_signal == 0 || g_signal == SIGINT;
  if (forgotten) {
    g_signal = 0;
    g_count = 0;
    catch_signals();
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return forgotten;
}

void set_signals_that_kill(int n) { g_that_kill = n; }

const char* interruption() {
  switch (g_signal.load()) {
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "Ctrl-C";
  }
}

int interrupted_exit_code() { return 128 + (interrupted() ? g_signal.load() : SIGINT); }

}  // namespace snapkv::cli
