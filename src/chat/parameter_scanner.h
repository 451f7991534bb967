// SPDX-License-Identifier: MIT
// ParameterScanner: reads a call whose parameters stand between tags, as Qwen3-Coder, GLM, MiniMax
// and others write them (ParameterTags):
//
//   <function=NAME>
//   <parameter=KEY>
//   VALUE
//   </parameter>
//   </function>
//
// Values are bare text; the function's schema, or a tag, says which of them are strings. Strings
// are passed on while they are written, other values when they are complete. Some models write all
// arguments as one JSON object instead: <function=NAME>{"KEY": VALUE}</function>
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "chat/call_reader.h"
#include "chat/call_syntax.h"
#include "chat/parameter_types.h"
#include "chat/value_scanner.h"

namespace snapkv::chat {

class ParameterScanner : public CallReader {
 public:
  /// `functions`: the schema of each function's parameters; must outlive this.
  ParameterScanner(const std::map<std::string, Json>& functions, const ParameterTags& tags)
      : functions_(functions), tags_(tags) {
    if (tags.name_begin.empty()) state_ = State::name;
  }

  bool push(char c) override;
  void finish() override;
  bool complete() const override { return state_ == State::complete; }
  bool has_name() const override { return has_name_; }
  const std::string& name() const override { return name_; }
  std::string take_arguments() override;
  bool has_arguments() const override { return state_ == State::complete || n_parameters_ > 0; }

 private:
  enum class State { begin, name, between, key, value_begin, value, json, complete, failed };

  bool push_name(char c);
  bool push_key(char c);
  bool push_between(char c);
  bool push_value_begin(char c);
  bool push_value(char c);
  bool push_json(char c);
  bool fail();
  /// `types`: what a tag says of the value.
  void begin_value(const std::string& key, JsonTypes types);
  void end_value();
  /// The value so far, without an end that may be the beginning of its end tag.
  std::string_view certain_text() const;
  void show_text(std::string_view text);
  /// Closes the object of arguments.
  void close();

  const std::map<std::string, Json>& functions_;
  const ParameterTags tags_;
  State state_ = State::begin;
  std::string text_;  // of the tag, name or value that is being read
  bool has_name_ = false;
  std::string name_;
  std::string key_;                     // JSON with its colon and the comma before it
  JsonTypes types_ = 0;                 // allowed types of the value
  size_t n_shown_ = 0;                  // bytes of the value's text that were passed on
  int n_parameters_ = 0;                // parameters that arguments_ has something of
  std::string arguments_;               // not yet taken
  std::unique_ptr<ValueScanner> json_;  // of arguments that are one object
};

}  // namespace snapkv::chat
