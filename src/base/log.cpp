// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <mutex>
#include <utility>

namespace snapkv {
namespace {

std::mutex g_mutex;
LogSink g_sink;

}  // namespace

void set_log_sink(LogSink sink) {
  std::lock_guard lock(g_mutex);
  g_sink = std::move(sink);
}

void log_message(LogLevel level, std::string_view message) {
  std::lock_guard lock(g_mutex);
  if (g_sink) g_sink(level, message);
}

}  // namespace snapkv
