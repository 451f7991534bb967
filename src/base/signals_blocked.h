// SPDX-License-Identifier: MIT
// SignalsBlocked: no signal's handler runs on this thread while one of these lives. Around calls of
// oneDNN, whose generated products point the stack pointer into memory from the heap (seen in
// 2.6): the kernel would write a handler's frame below it, over whatever lies there. A handler of
// ours could have a stack of its own (sigaltstack), those of a program that uses the library need
// not. Used by backend/cpu/tile_product.cpp and the benchmarks.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace snapkv {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // raised by what the thread itself does: blocked, they would end the process without a word
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace snapkv
