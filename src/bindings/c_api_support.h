// SPDX-License-Identifier: MIT
// What the functions of the C API share: errors become codes and messages, and no exception leaves.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "base/error.h"
#include "snapkv/snapkv.h"

namespace snapkv {

inline void set_error(char* error, size_t size, std::string_view message) {
  if (error == nullptr || size == 0) return;
  const size_t n = std::min(size - 1, message.size());
  std::memcpy(error, message.data(), n);
  error[n] = '\0';
}

/// snapkv_error_code() of this thread.
inline thread_local int last_error_code = SNAPKV_OK;

/// What a message calls an option: its name for snapkv_options_set(), "kv_budget", or the member of
/// a struct that it is, "budget".
enum class OptionWords { names, members };

inline void set_error(char* error, size_t size, const Error& e, OptionWords words) noexcept {
  try {
    const auto name = [](std::string_view option) { return std::string(option); };
    set_error(error, size, words == OptionWords::names ? e.message(name) : std::string(e.what()));
  } catch (const std::bad_alloc&) {
    set_error(error, size, e.what());
  }
}

/// Runs `f` and turns its exceptions into codes.
template <OptionWords kWords = OptionWords::names, typename F>
int guarded(char* error, size_t size, F&& f) noexcept {
  const auto failed = [&](int code, const char* message) {
    set_error(error, size, message);
    return last_error_code = code;
  };
  try {
    f();
    return SNAPKV_OK;
  } catch (const Error& e) {
    set_error(error, size, e, kWords);
    return last_error_code = static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    return failed(SNAPKV_ERROR_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return failed(SNAPKV_ERROR_RUNTIME, e.what());
  }
}

/// The result of `f`, a pointer; null after an exception.
template <OptionWords kWords = OptionWords::names, typename F>
auto guarded_pointer(char* error, size_t size, F&& f) noexcept -> decltype(f()) {
  decltype(f()) result = nullptr;
  guarded<kWords>(error, size, [&] { result = f(); });
  return result;
}

template <typename T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) fail(ErrorCode::kUsage, "{} is NULL", what);
  return *pointer;
}

}  // namespace snapkv
