// SPDX-License-Identifier: MIT
// Questions that end a conversation, for `snapkv eval qa --after`: others about the same text come
// before each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/qa/data.h"

namespace snapkv::eval {

/// Puts `n` other questions about its text before each question: those that follow it in the data,
/// after the last one the first again (QaQuestion::earlier). Throws kUsage naming the place if a
/// question has a gap, or a text has fewer than n + 1 questions.
std::vector<QaQuestion> ask_after_others(std::vector<QaQuestion> questions, int64_t n);

}  // namespace snapkv::eval
