// SPDX-License-Identifier: MIT
// Fidelity: how far compressed caches change a model's predictions, on any text, without labels. A
// passage is a prompt and the text that really follows it. The prompt is read once for all
// configurations; then the real tokens are fed to all of them, and at every position the
// distribution of each configuration is compared with that of the full cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/common/record_file.h"
#include "eval/common/runner.h"
#include "eval/fidelity/plan.h"

namespace snapkv::eval {

/// The results of one configuration on one passage. // [n_continue] each
struct Comparison {
  std::vector<double> nll;     ///< -ln p(true token)
  std::vector<double> kl;      ///< KL(full || this), in nats
  std::vector<int> agreement;  ///< 1 if the likeliest token is the same as with the full cache
  SessionStats after_prefill;
};
/// Feeds `continuation` to all configurations together; the first one is the reference. Calls
/// `on_step` after each decode step.
std::vector<Comparison> compare(const RunOptions& run,
                                const std::vector<SessionOptions>& configurations,
                                const std::vector<int32_t>& prompt,
                                const std::vector<int32_t>& continuation,
                                const std::function<void(int64_t step)>& on_step = {});

/// run.configurations, preceded by the full cache (same kv_type, chunk).
std::vector<SessionOptions> with_reference(const std::vector<SessionOptions>& configurations);

/// The parts of a record's key: passage, model, version, number of positions, configuration.
std::string fidelity_key(const RunOptions& run, const FidelityPlan& plan, const Passage& passage,
                         const SessionOptions& configuration);

/// Compares what the file does not have yet and appends a record for each passage and
/// configuration. The full cache runs whenever something is compared. `on_progress` gets the share
/// of work done.
void run_fidelity(const RunOptions& run, const FidelityPlan& plan, RecordFile& file,
                  const std::function<void(const std::string& title, double)>& on_progress = {});

/// Markdown: a table per length with a row per configuration, and how much of the texts was used.
std::string fidelity_table(const RunOptions& run, const FidelityPlan& plan, const RecordFile& file);

}  // namespace snapkv::eval
