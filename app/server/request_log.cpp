// SPDX-License-Identifier: MIT
#include "server/request_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace snapkv::server {
namespace {

constexpr size_t kMostWord = 100;  // bytes of what a client sends
constexpr size_t kMostMessage = 300;

/// Text of a client in one line without control characters.
std::string plain(std::string_view text, size_t most) {
  std::string line(text.substr(0, most));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return line.size() < text.size() ? line + "..." : line;
}

/// Paths that are asked every few seconds by what watches the server.
bool is_watched(std::string_view path) {
  return path == "/health" || path == "/v1/health" || path == "/metrics";
}

}  // namespace

std::string RequestLog::title(std::string_view method, std::string_view path,
                              std::string_view client) {
  std::string title = fmt::format("{} {}", plain(method, kMostWord), plain(path, kMostWord));
  const std::string_view word = client.substr(0, client.find(' '));
  return word.empty() ? title : fmt::format("{} ({})", title, plain(word, kMostWord));
}

void RequestLog::write(const std::string& text) const {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local = {};
  localtime_r(&now, &local);
  options_.write(
      fmt::format("{:02}:{:02}:{:02} {}", local.tm_hour, local.tm_min, local.tm_sec, text));
}

void RequestLog::answered(const std::string& title, const AnswerTimes& times, int64_t n_rows,
                          double seconds, std::string_view reason) const {
  if (!on()) return;
  const std::string guessed =
      times.n_accepted > 0 ? fmt::format(" ({} of them guessed)", times.n_accepted) : "";
  write(fmt::format("{}: tokens: {} read, {} reused, {} written{}; {} rows kept; {:.1f} s; {}",
                    title, times.n_prompt - times.n_reused, times.n_reused, times.n_generated,
                    guessed, n_rows, seconds, reason));
}

void RequestLog::replied(const std::string& title, std::string_view path, int status,
                         std::string_view message) const {
  if (!on() || (is_watched(path) && !options_.verbose)) return;
  const std::string why = message.empty() ? "" : ": " + plain(message, kMostMessage);
  write(fmt::format("{}: {}{}", title, status, why));
}

void RequestLog::reading(const std::string& title, const PromptProgress& progress) const {
  if (!shows_progress()) return;
  const double left = progress.fraction > 0
                          ? progress.seconds * (1 - progress.fraction) / progress.fraction
                          : 0;
  write(fmt::format("{}: reading {} tokens: {:.0f} % after {:.0f} s, about {:.0f} s left", title,
                    progress.n_total - progress.n_reused, 100 * progress.fraction,
                    progress.seconds, left));
}

void RequestLog::changes(const std::string& title, const std::vector<std::string>& notes) const {
  if (!on() || !options_.verbose) return;
  for (const std::string& note : notes) write(title + ": " + plain(note, kMostMessage));
}

}  // namespace snapkv::server
