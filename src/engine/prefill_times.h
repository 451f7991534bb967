// SPDX-License-Identifier: MIT
// PrefillTimes: where the time of a prompt goes. Filled by prefill_run.cpp and its attention step;
// what policies take is counted by their PrefillTarget.
#pragma once

#include "snapkv/engine.h"

namespace snapkv {

struct PrefillTimes {
  double pack = 0;       // laying weights out for products of many rows
  double layers = 0;     // computing the layers and the logits, attention and observers included
  double attention = 0;  // storing keys and values, attending
  double observe = 0;    // policies that look at every query, and the probe

  /// What all sessions of a prompt share.
  double total() const { return pack + layers - observe; }
  void add_to(SessionStats& stats) const {
    stats.pack_seconds += pack;
    stats.attention_seconds += attention;
    stats.linear_seconds += layers - observe - attention;
  }
};

}  // namespace snapkv
