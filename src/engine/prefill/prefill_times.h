// SPDX-License-Identifier: MIT
// PrefillTimes: how the time of a prompt is divided. Each PrefillTarget measures its own policy's
// time.
#pragma once

#include "snapkv/engine.h"

namespace snapkv {

struct PrefillTimes {
  double pack = 0;       // packing weights for products of many rows, moving them to huge pages
  double layers = 0;     // computing layers and logits, attention and observers included
  double attention = 0;  // storing keys and values, attending to them
  double observe = 0;    // observers: policies that look at every query, and the probe

  /// The time that all sessions of a prompt share.
  double total() const { return pack + layers - observe; }
  void add_to(SessionStats& stats) const {
    stats.pack_seconds += pack;
    stats.attention_seconds += attention;
    stats.linear_seconds += layers - observe - attention;
  }
};

}  // namespace snapkv
