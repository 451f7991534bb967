// SPDX-License-Identifier: MIT
// ParameterScanner: reads one call that a model writes as Qwen3-Coder does:
//
//   <function=NAME>
//   <parameter=KEY>
//   VALUE
//   </parameter>
//   </function>
//
// Values are bare text; the function's schema says which are strings. Those come while they are
// written, others when they are complete. Used by ToolStream.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "server/api/call_reader.h"
#include "server/api/parameter_types.h"

namespace snapkv::server {

class ParameterScanner : public CallReader {
 public:
  static constexpr std::string_view kBegin = "<function=";

  /// `functions`: the schema of each one's parameters; must outlive this.
  explicit ParameterScanner(const std::map<std::string, Json>& functions) : functions_(functions) {}

  bool push(char c) override;
  void finish() override;
  bool complete() const override { return state_ == State::complete; }
  bool has_name() const override { return has_name_; }
  const std::string& name() const override { return name_; }
  std::string take_arguments() override;
  bool has_arguments() const override { return state_ == State::complete || n_parameters_ > 0; }

 private:
  enum class State { begin, name, between, key, value, complete, failed };

  bool push_between(char c);
  bool push_value(char c);
  bool fail();
  void begin_value(const std::string& key);
  void end_value();
  /// Of the value so far: the text from where it begins to what may be its end.
  std::string_view certain_text() const;
  void show_text(std::string_view text);
  /// Ends the object of the arguments.
  void close();

  const std::map<std::string, Json>& functions_;
  State state_ = State::begin;
  std::string text_;  // of the tag, name or value being read
  bool has_name_ = false;
  std::string name_;
  std::string key_;        // with its colon, as JSON, and the comma before it
  JsonTypes types_ = 0;    // of the value
  size_t n_shown_ = 0;     // of the value's text
  int n_parameters_ = 0;   // of which arguments_ has had something
  std::string arguments_;  // to be taken
};

}  // namespace snapkv::server
