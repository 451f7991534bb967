// SPDX-License-Identifier: MIT
// ScriptedEngine: replaces the scheduler in tests of the API. It records the requests that it gets
// and answers them with updates that the test wrote. Its model is the needle model.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "server/api/context.h"
#include "server/api/exchange.h"
#include "server/request_engine.h"

namespace snapkv::test {

class ScriptedEngine : public server::RequestEngine {
 public:
  /// Pushes the updates that answer a request.
  using Script = std::function<void(const server::Request&, server::RequestUpdates&)>;

  ScriptedEngine();

  void set_script(Script script) { script_ = std::move(script); }
  std::vector<server::Request> requests() const;
  std::vector<std::shared_ptr<server::RequestUpdates>> generations() const;

  const Model& model() const override { return *model_; }
  const server::SchedulerOptions& options() const override { return options_; }
  std::shared_ptr<server::RequestUpdates> submit(server::Request request) override;
  /// Of a server with memory for `fit_limit_` bytes.
  server::PromptFit fit(server::Request request) const override;
  std::shared_ptr<server::RequestUpdates> make_snapshot(server::Request request,
                                                        const std::string& path,
                                                        const std::string& notes) override;
  server::DocumentStore& documents() override { return documents_; }
  void drain() override { draining_ = true; }
  bool draining() const override { return draining_; }
  bool idle() const override { return true; }
  std::vector<server::SlotInfo> slots() const override { return slots_; }
  void save_slot(int64_t id, const std::string& path) override;
  int64_t restore_slot(const std::string& path) override;
  void erase_slot(int64_t id) override;
  server::SchedulerStats stats() const override { return stats_; }

  server::SchedulerOptions options_;
  size_t fit_limit_ = size_t{1} << 40;
  server::SchedulerStats stats_;
  std::vector<server::SlotInfo> slots_;
  std::vector<std::string> calls_;  ///< "save 3 /dir/name" and the like

 private:
  std::shared_ptr<const Model> model_;
  server::DocumentStore documents_{model_};
  Script script_;
  mutable std::mutex mutex_;
  std::vector<server::Request> requests_;
  std::vector<std::shared_ptr<server::RequestUpdates>> generations_;
  bool draining_ = false;
};

/// Answers a request with these texts: a prompt of 10 tokens, 4 of which were reused, then each
/// text in parts of `n` bytes, then the end.
void push_answer(server::RequestUpdates& updates, const std::vector<std::string>& texts,
                 size_t n = 1000, server::FinishReason reason = server::FinishReason::stop);

/// Options for the needle model, with ChatML as its template and Hermes' tools.
server::ApiOptions api_options();

/// A template that writes tools and calls in the format of Hermes and Qwen.
extern const char* const kHermesTemplate;

/// One of the functions of exchange.h.
using ReadExchange = server::Exchange (*)(const server::Json&, const server::ApiContext&);

}  // namespace snapkv::test
