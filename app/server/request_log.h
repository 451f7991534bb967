// SPDX-License-Identifier: MIT
// RequestLog: one line for each request, how far long prompts are read, and, if it is verbose, what
// was changed in a request. Any thread may write to it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/report.h"
#include "server/request.h"

namespace snapkv::server {

class RequestLog {
 public:
  struct Options {
    std::function<void(const std::string& line)> write;  ///< empty: nothing is logged
    bool verbose = false;                                ///< changes, and requests of /health
    bool shows_progress = true;                          ///< of prompts that take long
  };
  /// Seconds of reading between two lines about a prompt.
  static constexpr double kProgressSeconds = 5;

  explicit RequestLog(Options options) : options_(std::move(options)) {}

  bool on() const { return options_.write != nullptr; }
  bool shows_progress() const { return on() && options_.shows_progress; }

  /// What lines call a request: "POST /v1/messages (claude-cli/2.1)". `client`: its User-Agent.
  static std::string title(std::string_view method, std::string_view path, std::string_view client);

  /// An answer that was written. `reason`: why it ended.
  void answered(const std::string& title, const AnswerTimes& times, int64_t n_rows, double seconds,
                std::string_view reason) const;
  /// A request without such an answer. `message`: of its error; empty: none.
  void replied(const std::string& title, std::string_view path, int status,
               std::string_view message) const;
  void reading(const std::string& title, const PromptProgress& progress) const;
  void changes(const std::string& title, const std::vector<std::string>& notes) const;

 private:
  void write(const std::string& text) const;

  const Options options_;
};

}  // namespace snapkv::server
