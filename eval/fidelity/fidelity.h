// SPDX-License-Identifier: MIT
// Fidelity: how far compressed caches move a model's predictions on any text, without labels. A
// passage is a prompt and the text that truly follows it. The prompt is read once for all
// configurations; the true tokens are then fed to all of them, and at every position each
// configuration's distribution is compared with the full cache's. Called by
// app/cli/eval/fidelity.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/common/record_file.h"
#include "eval/common/runner.h"
#include "eval/fidelity/plan.h"

namespace snapkv::eval {

/// One configuration on one passage. // [n_continue] each
struct Comparison {
  std::vector<double> nll;     ///< -ln p(true token)
  std::vector<double> kl;      ///< KL(full || this), in nats
  std::vector<int> agreement;  ///< 1 where the likeliest token is the full cache's
  SessionStats after_prefill;
};
/// Feeds `continuation` to all configurations together; the first is the reference. `on_step` is
/// called after each decode step.
std::vector<Comparison> compare(const RunOptions& run,
                                const std::vector<SessionOptions>& configurations,
                                const std::vector<int32_t>& prompt,
                                const std::vector<int32_t>& continuation,
                                const std::function<void(int64_t step)>& on_step = {});

/// run.configurations with the full cache (same kv_type, chunk) as the first.
std::vector<SessionOptions> with_reference(const std::vector<SessionOptions>& configurations);

/// What makes a record's key: passage, model, version, number of positions, configuration.
std::string fidelity_key(const RunOptions& run, const FidelityPlan& plan, const Passage& passage,
                         const SessionOptions& configuration);

/// Compares what the file lacks and appends a record for each passage and configuration; the full
/// cache runs whenever something is compared. `on_progress`: share of the work that is done.
void run_fidelity(const RunOptions& run, const FidelityPlan& plan, RecordFile& file,
                  const std::function<void(const std::string& title, double)>& on_progress = {});

/// Markdown: a table per length, a row per configuration, and how much of the texts was used.
std::string fidelity_table(const RunOptions& run, const FidelityPlan& plan, const RecordFile& file);

}  // namespace snapkv::eval
