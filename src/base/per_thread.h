// SPDX-License-Identifier: MIT
// PerThread: one object for each thread that asks for it. A thread_local object with a destructor
// would do, except that glibc ends the program if it has no memory to register the destructor.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>
#include <system_error>

namespace snapkv {

/// Make it live as long as the process: `static auto& x = *new PerThread<T>;`, so that threads that
/// end after main() can still use it.
template <typename T>
class PerThread {
 public:
  PerThread() {
    const int error = pthread_key_create(&key_, [](void* p) { delete static_cast<T*>(p); });
    if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_key_create");
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// The calling thread's object, made on its first call and destroyed when the thread ends. Throws
  /// std::bad_alloc; the next call tries again.
  T& get() {
    if (void* p = pthread_getspecific(key_)) return *static_cast<T*>(p);
    auto made = std::make_unique<T>();
    if (pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_;
};

}  // namespace snapkv
