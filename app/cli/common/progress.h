// SPDX-License-Identifier: MIT
// What a waiting person sees on stderr: a bar in a terminal, elsewhere one plain line now and then
// for phases that take long, and the library's log. Used by every command that loads a model.
#pragma once

#include <string>

#include "base/timer.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

class ProgressDisplay {
 public:
  /// Also becomes the sink of the library's log while it lives, through spdlog: warnings, with
  /// `verbose` information too.
  ProgressDisplay(bool enabled, bool verbose);
  /// Clears the bar.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// For the library's callbacks: shows the state; false (stop) after Ctrl-C and its like.
  ProgressFn callback();
  /// Replaces the engine's phase in front of the bar: "trial 12 of 100". Empty: back to phases.
  void set_title(std::string title) { title_ = std::move(title); }
  /// Shows n of `limit` (negative: no limit) generated tokens.
  void show_decode(int64_t n, int64_t limit, double seconds);
  /// Shows a fraction under the title.
  void show_fraction(double fraction, double seconds);
  /// Removes the bar, so that something else may be printed.
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
