// SPDX-License-Identifier: MIT
// Budget: how much work one rendering may do. Templates come from model files, which nobody has
// checked: an endless loop or a string that keeps doubling must soon end in an error. Every part of
// the interpreter charges its work here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace snapkv::jinja {

class Budget {
 public:
  /// How deep calls are currently nested; see Nesting.
  int depth = 0;

  /// A unit is about one evaluated expression, 50 to 100 ns.
  explicit Budget(int64_t units) : left_(units) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void charge(int64_t units) {
    left_ -= units;
    if (left_ < 0) exhausted();
  }
  /// Charges for text that is copied, searched or compared.
  void charge_bytes(size_t n) { charge(static_cast<int64_t>(n / kBytesPerUnit)); }
  /// Fails if a text of this length is too long for the budget, before memory is allocated for it.
  void charge_text(int64_t characters) {
    if (characters > left_ * kBytesPerUnit) exhausted();
  }

 private:
  static constexpr int64_t kBytesPerUnit = 16;

  [[noreturn]] static void exhausted() {
    fail(ErrorCode::kRuntime,
         "the template does more work than a chat template may: it loops too long or makes too "
         "much text");
  }

  int64_t left_;
};

/// Counts one more level of nested calls for as long as it lives. A level takes less than 2 KiB of
/// stack, even in builds with sanitizers.
class Nesting {
 public:
  explicit Nesting(Budget& budget) : budget_(budget) {
    if (++budget_.depth <= kLimit) return;
    --budget_.depth;
    fail(ErrorCode::kRuntime, "nested more than {} levels deep", kLimit);
  }
  ~Nesting() { --budget_.depth; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  static constexpr int kLimit = 1000;
  Budget& budget_;
};

}  // namespace snapkv::jinja
