// SPDX-License-Identifier: MIT
#include "engine/plan/plan_prefill.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/available_memory.h"
#include "base/error.h"
#include "engine/core/option_range.h"
#include "engine/plan/memory_plan.h"
#include "engine/prefill/kv_prefix.h"
#include "model/packing.h"

namespace snapkv {
namespace {

/// Prompts of at least this many tokens let go of a layer's weights when they are packed or, if
/// products read them directly, when the layer has been computed. Mapping them again takes the next
/// reader about 30 ms per GB, too much for a short prompt.
constexpr int64_t kReleaseMinTokens = 4096;

void check_tokens(std::span<const int32_t> tokens, int64_t n_vocab) {
  if (tokens.empty()) fail(ErrorCode::kUsage, "the prompt has no tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= n_vocab) {
      fail(ErrorCode::kUsage, "token {} of the prompt is {}, the vocabulary has {} tokens", i,
           tokens[i], n_vocab);
    }
  }
}

void check_sessions(std::span<Session::Impl* const> sessions, int64_t n) {
  if (sessions.empty()) fail(ErrorCode::kUsage, "prefill: no sessions");
  const Session::Impl& first = *sessions[0];
  for (size_t i = 0; i < sessions.size(); ++i) {
    const Session::Impl& s = *sessions[i];
    if (s.n_past + n > s.n_ctx) {
      const std::string before = s.n_past > 0 ? fmt::format(" after {} read before", s.n_past) : "";
      fail(ErrorCode::kContextExceeded, "the prompt has {} tokens{}, and the context is {}", n,
           before, s.n_ctx);
    }
    if (sessions.size() == 1) return;
    if (s.n_past > 0 || std::count(sessions.begin(), sessions.end(), &s) != 1) {
      fail(ErrorCode::kUsage, "prefill_many: session {} is not empty or is there twice", i);
    }
    if (s.model != first.model || s.options.kv_type != first.options.kv_type ||
        s.options.chunk != first.options.chunk || s.options.spill_dir != first.options.spill_dir ||
        s.options.prefill_attention != first.options.prefill_attention ||
        s.options.attention_share != first.options.attention_share) {
      fail(ErrorCode::kUsage, "prefill_many: session {} differs from session 0 in more than kv", i);
    }
    check_rotation(s, first, i);
  }
}

void check_options(const Session::Impl& first, const PrefillOptions& options) {
  require_range("n_logits", options.n_logits, 1, kMostTokens);
  if (options.prefix == nullptr) require_range("n_from_prefix", options.n_from_prefix, 0, 0);
  if (options.prefix != nullptr && options.probe != nullptr) {
    fail(ErrorCode::kUsage, "a probe reports what prefill computes: it can't be set with a prefix");
  }
  if (first.backend().is_device() && !first.options.spill_dir.empty()) {
    fail(ErrorCode::kUsage,
         "{} is for the CPU; a GPU's hidden states go to host memory when they don't fit",
         OptionName("spill_dir"));
  }
  if (first.backend().is_device() && first.options.kv_refresh) {
    fail(ErrorCode::kUsage, "{} is for the CPU; on a GPU a later turn sees what was kept",
         OptionName("kv_refresh"));
  }
  if (first.backend().is_device() && first.options.prefill_attention == PromptAttention::sparse) {
    fail(ErrorCode::kUsage, "{} sparse is for the CPU", OptionName("prefill_attention"));
  }
  if (first.backend().is_device() && first.options.draft == Draft::self) {
    fail(ErrorCode::kUsage, "{} self is for the CPU; a GPU has lookup", OptionName("draft"));
  }
}

std::string mib(size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// A prompt of n tokens for all sessions. `compress`: PrefillOptions::compress.
MemoryPlan plan_all(std::span<Session::Impl* const> sessions, int64_t n, bool compress,
                    int64_t n_logits, HiddenStates::Place place = HiddenStates::Place::memory) {
  const Session::Impl& first = *sessions[0];
  std::vector<SessionOptions> options;
  for (const Session::Impl* s : sessions) {
    options.push_back(s->options);
    if (compress) continue;
    options.back().kv = {.name = "full"};
    if (s->options.draft == Draft::self) options.back().draft = Draft::lookup;
  }
  return plan_prompt({.info = first.info(),
                      .sessions = options,
                      .n_tokens = n,
                      .n_logits = n_logits,
                      .hidden_place = place},
                     {.device = std::string(first.backend().device()),
                      .compute = first.backend().compute_dtype(),
                      .n_threads = first.backend().n_threads()});
}

/// The same for a later turn over the whole history (Session::Impl::keeps_all()): rows that are
/// already there need no new memory.
MemoryPlan plan_turn(std::span<Session::Impl* const> sessions, int64_t n, bool compress,
                     int64_t n_logits) {
  MemoryPlan plan = plan_all(sessions, n, compress, n_logits);
  const Session::Impl& s = *sessions[0];
  if (s.history_meter.now == 0) return plan;
  const MemoryPlan whole = plan_all(sessions, s.n_past + n, compress, n_logits);
  plan.kv_scratch = whole.kv_scratch;
  plan.kv_history = whole.kv_history - std::min(whole.kv_history, s.history_meter.now);
  return plan;
}

/// Where the prompt's hidden states go, so that it fits; throws if it does not. Weights are not
/// counted: the system may drop the mapped file's pages, pages moved by WeightPages are no longer
/// part of the available memory, and a device already holds its copy.
HiddenStates::Place find_place(std::span<Session::Impl* const> sessions, int64_t n,
                               MemoryPlan& plan) {
  const Session::Impl& first = *sessions[0];
  const Backend& backend = first.backend();
  const bool spilled = !first.options.spill_dir.empty();
  const size_t allowed = first.options.memory_limit;
  const size_t limit = allowed > 0           ? allowed
                       : backend.is_device() ? backend.free_memory()
                                             : available_memory();
  const auto needed = [&] { return plan.total() - plan.weights; };
  if (needed() <= limit) return spilled ? HiddenStates::Place::file : HiddenStates::Place::memory;
  if (backend.is_device()) {
    plan.hidden_states = plan_all(sessions, n, false, 1, HiddenStates::Place::host).hidden_states;
    if (needed() <= limit) return HiddenStates::Place::host;
  }
  const std::string whose =
      allowed > 0 ? fmt::format("allowed by {}", OptionName("memory_limit")) : "available";
  const std::string advice =
      spilled || backend.is_device()
          ? ""
          : fmt::format("; {} would put hidden states into a file", OptionName("spill_dir"));
  fail(ErrorCode::kDoesNotFit,
       "a prompt of {} tokens needs {} beside the weights (hidden states {}, one layer of KV {}, "
       "kept KV {}, activations {}, packed weights {}, logits {}, scores {}, kernels {}{}); {} are "
       "{}{}",
       n, mib(needed()), mib(plan.hidden_states), mib(plan.kv_scratch), mib(plan.kv_kept),
       mib(plan.activations), mib(plan.packed_weights), mib(plan.logits), mib(plan.scores),
       mib(plan.kernels),
       (plan.kv_history > 0 ? fmt::format(", KV kept for later turns {}", mib(plan.kv_history))
                            : "") +
           (plan.draft > 0 ? fmt::format(", the model that guesses {}", mib(plan.draft)) : ""),
       mib(limit), marked(whose), marked(advice));
}

}  // namespace

bool packs_weights(const Session::Impl& session, int64_t n_tokens) {
  return packs_weights(session.backend(), session.info().file_type, n_tokens);
}

PrefillPlan plan_prefill(std::span<Session::Impl* const> sessions, std::span<const int32_t> tokens,
                         const PrefillOptions& options, bool makes_prefix) {
  const int64_t n = std::ssize(tokens);
  check_sessions(sessions, n);
  const Session::Impl& first = *sessions[0];
  check_tokens(tokens, first.info().n_vocab);
  check_options(first, options);
  if (options.prefix != nullptr) {
    for (const Session::Impl* s : sessions) {
      check_prefix(*options.prefix, options.n_from_prefix, *s, tokens);
    }
  }
  const auto chooses = [](const Session::Impl* s) {
    return s->n_past == 0 || !s->policy->info().shares_layers;
  };
  const bool compress = options.compress && std::ranges::all_of(sessions, chooses);
  PrefillPlan plan;
  plan.tokens = tokens.subspan(options.n_from_prefix);
  plan.n_tokens = n - options.n_from_prefix;
  plan.n_past = first.n_past + options.n_from_prefix;
  plan.chunk = std::min(plan.n_tokens, first.options.chunk);
  plan.n_logits = std::min(plan.n_tokens, options.n_logits);
  plan.share = attention_share(first.options);
  plan.packed = packs_weights(first, plan.n_tokens);
  plan.packed_at_use =
      packs_at_use(first.backend(), first.info().file_type, plan.n_tokens, first.options.chunk);
  plan.releases_weights = plan.packed && !plan.packed_at_use && plan.n_tokens >= kReleaseMinTokens;
  const bool again = compress && std::ranges::any_of(sessions, [n](Session::Impl* s) {
                       return wants_replays(s->architecture().spec(), *s->policy, n);
                     });
  if (again) {
    plan.replays = make_replays(*first.model, plan.tokens);
    plan.n_replayed = most_replayed(plan.n_tokens);
  }
  const int64_t n_held = options.on_logits ? std::min(kOutputRows, plan.n_logits) : plan.n_logits;
  MemoryPlan memory = plan_turn(sessions, n, compress, n_held);
  for (const Session::Impl* s : sessions) {
    memory.draft -= std::min(memory.draft, s->stats.draft_bytes);  // it is there already
  }
  if (options.prefix != nullptr) {  // the prefix's rows are not computed again
    const MemoryPlan read = plan_all(sessions, plan.n_tokens, compress, n_held);
    memory.hidden_states = read.hidden_states;
    memory.activations = read.activations;
    memory.packed_weights = read.packed_weights;
  }
  if (!plan.packed) memory.packed_weights = 0;
  if (makes_prefix) {
    const int64_t n_shared =
        options.prefix ? options.prefix->shared(options.n_from_prefix).n_tokens : 0;
    memory.kv_history += KvPrefix::bytes_for(first.info(), first.options, n - n_shared);
  }
  plan.hidden_place = find_place(sessions, n, memory);
  plan.planned_bytes = memory.total() - memory.weights;
  return plan;
}

}  // namespace snapkv
