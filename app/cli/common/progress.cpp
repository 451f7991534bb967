// SPDX-License-Identifier: MIT
#include "cli/common/progress.h"

#include <fmt/core.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"

namespace snapkv::cli {
namespace {

constexpr double kBarInterval = 0.1;    // seconds before the first bar and between updates
constexpr double kLineInterval = 10.0;  // seconds between plain lines
constexpr int kBarWidth = 24;

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::load:
      return "load";
    case Phase::prefill:
      return "prefill";
  }
  return "";
}

std::string eta(double fraction, double seconds) {
  if (fraction <= 0.02 || seconds <= 0.2 || fraction >= 1) return "";
  return "  ETA " + format_wait(seconds * (1 - fraction) / fraction);
}

}  // namespace

ProgressDisplay::ProgressDisplay(bool enabled, bool verbose)
    : enabled_(enabled), terminal_(stderr_is_terminal() && !is_dumb_terminal()) {
  const auto logger = std::make_shared<spdlog::logger>(
      "snapkv", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("snapkv: %^%l%$: %v");
  logger->set_level(verbose ? spdlog::level::info : spdlog::level::warn);
  set_log_sink([logger, this](LogLevel level, std::string_view message) {
    const auto severity = level == LogLevel::kWarn ? spdlog::level::warn : spdlog::level::info;
    if (!logger->should_log(severity)) return;
    clear();
    logger->log(severity, "{}", message_text(message));
  });
}

ProgressDisplay::~ProgressDisplay() {
  set_log_sink({});
  clear();
}

ProgressFn ProgressDisplay::callback() {
  return [this](const Progress& progress) { return show(progress); };
}

bool ProgressDisplay::show(const Progress& p) {
  if (interrupted()) return false;
  if (!title_.empty() || !enabled_) return true;
  std::string detail;
  if (p.phase == Phase::prefill) {
    const auto done = static_cast<int64_t>(static_cast<double>(p.n_tokens) * p.fraction);
    detail = fmt::format("  {}  {}{}", plural(p.n_tokens, "token"), format_rate(done, p.seconds),
                         eta(p.fraction, p.seconds));
    if (p.n_layer > 0) detail += fmt::format("  layer {}/{}", p.il + 1, p.n_layer);
  }
  draw(phase_name(p.phase), p.fraction, detail);
  return true;
}

void ProgressDisplay::show_decode(int64_t n, int64_t limit, double seconds) {
  if (!enabled_) return;
  const double fraction = limit > 0 ? static_cast<double>(n) / static_cast<double>(limit) : -1.0;
  const std::string of =
      limit > 0 ? fmt::format("  {} of {}", n, plural(limit, "token")) : "  " + plural(n, "token");
  draw("decode", fraction,
       fmt::format("{}  {}{}", of, format_rate(n, seconds), eta(fraction, seconds)));
}

void ProgressDisplay::show_fraction(double fraction, double seconds) {
  if (enabled_) draw(title_, fraction, eta(fraction, seconds));
}

void ProgressDisplay::show_fetch(uint64_t done, uint64_t total, uint64_t new_bytes,
                                 double seconds) {
  if (!enabled_ || total == 0) return;
  const double rate = seconds > 0 ? static_cast<double>(new_bytes) / seconds : 0;
  std::string detail = fmt::format("  {} of {}", format_bytes(done), format_bytes(total));
  if (rate >= 1 && seconds > 0.5) {  // the rate comes last, where a narrow terminal cuts
    if (done < total) detail += "  ETA " + format_wait(static_cast<double>(total - done) / rate);
    detail += fmt::format("  {}/s", format_bytes(static_cast<size_t>(rate)));
  }
  draw("fetch", static_cast<double>(done) / static_cast<double>(total), detail);
}

// Draws the bar; a negative fraction means that the end is unknown, so there is no bar.
void ProgressDisplay::draw(const std::string& phase, double fraction, const std::string& detail) {
  const bool new_phase = phase != last_phase_ && title_.empty();
  const double interval = terminal_ ? kBarInterval : kLineInterval;
  const bool due = since_drawn_.seconds() >= interval;
  if (new_phase && !terminal_) since_drawn_ = Timer();  // a line only for phases that take a while
  last_phase_ = phase;
  if (!due || (new_phase && !terminal_)) return;
  since_drawn_ = Timer();
  std::string line = fmt::format("{:<8} ", phase);
  if (fraction >= 0 && terminal_) {
    const int filled = std::clamp(static_cast<int>(fraction * kBarWidth + 0.5), 0, kBarWidth);
    line += fmt::format("[{}{}] ", std::string(static_cast<size_t>(filled), '='),
                        std::string(static_cast<size_t>(kBarWidth - filled), ' '));
  }
  if (fraction >= 0) line += fmt::format("{:3.0f}%", fraction * 100);
  line += detail;
  if (terminal_) {
    line.resize(std::min(line.size(), static_cast<size_t>(std::max(20, terminal_width() - 1))));
    write_styled_stderr("\r\x1b[K" + line);
    drawn_ = true;
  } else {
    write_stderr("snapkv: " + line + "\n");
  }
}

void ProgressDisplay::clear() {
  if (!drawn_) return;
  write_styled_stderr("\r\x1b[K");
  drawn_ = false;
  last_phase_.clear();
}

}  // namespace snapkv::cli
