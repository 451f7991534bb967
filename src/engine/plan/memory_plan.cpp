// SPDX-License-Identifier: MIT
#include "engine/plan/memory_plan.h"

#include <string>
#include <vector>

#include "base/available_memory.h"
#include "base/error.h"
#include "cache/layer_state.h"
#include "engine/core/draft_reader.h"
#include "engine/core/kv_types.h"
#include "engine/core/option_range.h"
#include "engine/plan/rehearsal.h"
#include "model/model_spec.h"
#include "policy/policy.h"

namespace snapkv {
namespace {

/// What the model that guesses takes beside a session of these options.
size_t draft_bytes(const ModelInfo& info, const SessionOptions& options,
                   const DeviceTraits& device) {
  if (options.draft != Draft::model) return 0;
  const SessionOptions own = draft_reader_options(*info.draft, options);
  const MemoryPlan plan = plan_prompt({.info = *info.draft,
                                       .sessions = {&own, 1},
                                       .n_tokens = draft_reader_tokens(*info.draft, options),
                                       .guesses = true},
                                      device);
  return plan.total() - plan.weights;
}

}  // namespace

MemoryPlan plan_prompt(const PlannedPrompt& prompt, const DeviceTraits& device) {
  const ModelInfo& info = prompt.info;
  if (info.spec == nullptr || info.decoder == nullptr) {
    fail(ErrorCode::kUsage,
         "plan_memory: info must come from Model::info() or describe_model(), of a model that can "
         "run");
  }
  require_range("n_tokens", prompt.n_tokens, 1, kMostTokens);
  std::vector<SessionOptions> sessions;
  for (const SessionOptions& options : prompt.sessions) {
    sessions.push_back(resolve_options(options, info));
  }
  DeviceTraits traits = device;
  traits.asked = info.spec->compute;
  const SessionOptions& first = sessions[0];
  const bool in_file = !first.spill_dir.empty();
  MemoryPlan plan =
      rehearse({.info = info,
                .sessions = sessions,
                .n_tokens = prompt.n_tokens,
                .n_logits = prompt.n_logits,
                .hidden_place = in_file ? HiddenStates::Place::file : prompt.hidden_place,
                .guesses = prompt.guesses},
               traits);
  plan.weights = info.weight_bytes;
  if (info.draft != nullptr) plan.weights += info.draft->weight_bytes;
  for (const SessionOptions& options : sessions) plan.draft += draft_bytes(info, options, device);
  plan.kv_full = info.spec->full_bytes(first.kv_type, prompt.n_tokens);
  plan.budget = Policy::make(first.kv)->budget_for(prompt.n_tokens);
  return plan;
}

MemoryPlan plan_memory(const ModelInfo& info, const SessionOptions& options, int64_t n_tokens,
                       DType compute, const std::string& device, int n_threads) {
  return plan_prompt({.info = info, .sessions = {&options, 1}, .n_tokens = n_tokens},
                     {.device = device, .compute = compute, .n_threads = n_threads});
}

int64_t longest_prompt(const ModelInfo& info, const SessionOptions& options, size_t bytes,
                       DType compute, const std::string& device) {
  const auto fits = [&](int64_t n) {
    try {
      const MemoryPlan plan = plan_memory(info, options, n, compute, device);
      return plan.total() - plan.weights <= bytes;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kDoesNotFit) throw;
      return false;  // some policies have limits of their own
    }
  };
  if (!fits(1)) return 0;
  int64_t low = 1, high = 2;  // low fits
  while (high < kMostTokens && fits(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

size_t free_memory() { return available_memory(); }

namespace {

const ModelSpec& spec_of(const ModelInfo& info) {
  if (info.spec != nullptr) return *info.spec;
  fail(ErrorCode::kUsage,
       "sizes of a cache: info must come from Model::info() or describe_model()");
}

}  // namespace

size_t kv_bytes_per_token(const ModelInfo& info, DType kv_type) {
  validate_kv_type(kv_type, info);
  return spec_of(info).bytes_per_token(kv_type);
}

size_t kv_layer_bytes(const ModelInfo& info, DType kv_type, int64_t il, int64_t n_rows) {
  validate_kv_type(kv_type, info);
  const ModelSpec& spec = spec_of(info);
  if (il < 0 || il >= std::ssize(spec.layers)) {
    fail(ErrorCode::kUsage, "kv_layer_bytes: there is no layer {}, the model has {} layers", il,
         spec.layers.size());
  }
  return spec.layers[il].state.bytes(kv_type, n_rows);
}

}  // namespace snapkv
