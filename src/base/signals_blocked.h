// SPDX-License-Identifier: MIT
// SignalsBlocked: prevents signal handlers from running on this thread while an object exists.
// Needed around calls of a library whose generated code lets the stack pointer point into heap
// memory: the kernel would write a handler's frame below it, over whatever is there.
// Our own handlers could use a separate stack (sigaltstack), but those of a program that uses the
// library need not.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace snapkv {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    // caused by the thread's own actions: if blocked, they would end the process without a message
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
