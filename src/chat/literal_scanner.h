// SPDX-License-Identifier: MIT
// LiteralScanner: reads a call in Gemma 4's format while a model writes it,
//
//   NAME{KEY:<|"|>TEXT<|"|>,KEY:3,KEY:{KEY:[true,null]}}
//
// and passes its arguments on as JSON. Keys may stand between <|"|> too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/call_reader.h"

namespace snapkv::chat {

class LiteralScanner : public CallReader {
 public:
  static constexpr std::string_view kQuote = "<|\"|>";

  bool push(char c) override;
  bool complete() const override { return state_ == State::complete; }
  bool has_name() const override { return has_name_; }
  const std::string& name() const override { return name_; }
  std::string take_arguments() override;
  bool has_arguments() const override { return has_name_; }

 private:
  enum class State { name, value, key, word, string, next, complete, failed };

  bool begin_value(char c);
  bool push_key(char c);
  bool push_next(char c);
  bool push_string(char c);
  bool end_word();
  bool close(char c);
  bool fail() {
    state_ = State::failed;
    return false;
  }

  State state_ = State::name;
  std::string name_, text_;  // of the name; of the key, word or quote that is being read
  bool has_name_ = false;
  bool is_key_ = false;     // the string is a key
  bool is_empty_ = false;   // nothing follows the last open bracket yet
  std::vector<char> open_;  // closing brackets of the open ones
  std::string arguments_;   // not yet taken
};

}  // namespace snapkv::chat
