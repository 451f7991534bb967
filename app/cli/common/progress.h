// SPDX-License-Identifier: MIT
// Progress on stderr: a bar in a terminal, elsewhere an occasional plain line for phases that take
// long; and the library's log.
#pragma once

#include <cstdint>
#include <string>

#include "base/timer.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

class ProgressDisplay {
 public:
  /// While it exists, it also receives the library's log, through spdlog: warnings, and with
  /// `verbose` information too.
  ProgressDisplay(bool enabled, bool verbose);
  /// Clears the bar.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// A callback for the library: shows the state; returns false (stop) after Ctrl-C or another
  /// signal.
  ProgressFn callback();
  /// Replaces the engine's phase before the bar: "trial 12 of 100". Empty: shows phases again.
  void set_title(std::string title) { title_ = std::move(title); }
  /// Shows n of `limit` (negative: no limit) generated tokens.
  void show_decode(int64_t n, int64_t limit, double seconds);
  /// Shows a fraction under the title.
  void show_fraction(double fraction, double seconds);
  /// Shows that `done` of `total` bytes are fetched, `new_bytes` of them in the last `seconds`.
  void show_fetch(uint64_t done, uint64_t total, uint64_t new_bytes, double seconds);
  /// Removes the bar, so that other text can be printed.
  void clear();

 private:
  bool show(const Progress& progress);
  void draw(const std::string& phase, double fraction, const std::string& detail);

  bool enabled_;
  bool terminal_;
  bool drawn_ = false;
  std::string title_;
  std::string last_phase_;
  Timer since_drawn_;
};

}  // namespace snapkv::cli
