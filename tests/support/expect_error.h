// SPDX-License-Identifier: MIT
// expect_error: runs a function and checks the Error it throws: its code and words of its message.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "snapkv/error.h"

namespace snapkv::test {

template <typename Action>
void expect_error(ErrorCode code, std::initializer_list<std::string_view> words, Action&& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    const std::string message = e.what();
    for (const std::string_view word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
    }
    return;
  }
  ADD_FAILURE() << "no error, expected one";
}

}  // namespace snapkv::test
