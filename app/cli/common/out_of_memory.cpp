// SPDX-License-Identifier: MIT
#include "cli/common/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "base/error.h"

namespace snapkv::cli {
namespace {

std::atomic<bool> refused{false};  // whether operator new has ever failed

[[noreturn]] void refuse() {
  refused = true;
  throw std::bad_alloc();
}

[[noreturn]] void end() {
  if (refused) {
    constexpr std::string_view kMessage = "snapkv: error: out of memory\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    ::_exit(static_cast<int>(ErrorCode::kDoesNotFit));
  }
  std::abort();
}

}  // namespace

void end_cleanly_without_memory() {
  std::set_new_handler(refuse);
  std::set_terminate(end);
}

}  // namespace snapkv::cli
