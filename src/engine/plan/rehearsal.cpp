// SPDX-License-Identifier: MIT
// The dry run leaves out what would repeat. Of the layers it reads one of each kind
// (layer_sample.h). Of a layer's chunks it reads only the last one, as long as any: its ops have as
// many tokens as those of the other chunks and see at least as many rows, and memory that a chunk
// leaves behind (the scratch layer, the window's queries, sums of observed attention) has its full
// size from the layer's first chunk on. So time depends neither on the number of tokens nor, as
// long as layers are alike, on that of layers.
#include "engine/plan/rehearsal.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backend/measure/measuring_backend.h"
#include "engine/core/layer_budget.h"
#include "engine/decode/decode_step.h"
#include "engine/plan/layer_sample.h"
#include "engine/prefill/prefill_run.h"
#include "model/packing.h"

namespace snapkv {
namespace {

/// Memory that a plan names. All other memory is that of scores and selections.
constexpr const char* kNamed[] = {HiddenStates::kLabel, ActivationBuffer::kLabel,
                                  kPackedWeights,       QueryRing::kLabel,
                                  LayerState::kLabel,   LogitRows::kLabel};

class Rehearsal {
 public:
  Rehearsal(const PlannedPrompt& prompt, const DeviceTraits& device)
      : prompt_(prompt),
        backend_(device, kNamed),
        policies_(make_policies(prompt)),
        sample_(*prompt.info.decoder, [this](int il) { return kept_rows(il); }) {
    for (size_t i = 0; i < prompt.sessions.size(); ++i) {
      auto session = std::make_unique<Session::Impl>();
      session->parts.info = &prompt.info;
      session->parts.backend = &backend_;
      session->parts.architecture = &sample_;
      session->options = prompt.sessions[i];
      session->policy = std::move(policies_[i]);
      session->n_ctx = std::max(prompt.n_tokens + kMostStepTokens, prompt.sessions[i].n_ctx);
      sessions_.push_back(std::move(session));
    }
  }

  MemoryPlan run() {
    read();
    for (const auto& session : sessions_) {
      if (session->options.draft == Draft::self || prompt_.guesses) {
        prepare_guesses(*session, session->most_step_tokens());
      }
      count_kept(*session);
    }
    Session::Impl* const first = sessions_[0].get();
    const std::vector<int32_t> tokens(
        std::clamp<int64_t>(decode_room(*first), 1, first->most_step_tokens()));
    const StepTokens step = tokens;
    decode_step({&first, 1}, {&step, 1});
    plan_.hidden_states = backend_.peak(HiddenStates::kLabel);
    plan_.activations = backend_.peak(ActivationBuffer::kLabel);
    plan_.packed_weights = backend_.peak(kPackedWeights);
    for (const auto& session : sessions_) {
      for (int il = 0; session->queries && il < sample_.config().n_layer; ++il) {
        plan_.queries += session->queries.layer_bytes(il) * sample_.count(il);
      }
    }
    plan_.logits = backend_.peak(LogitRows::kLabel);
    plan_.scores = backend_.peak_of_others();
    plan_.kernels = backend_.most_workspace() + backend_.library_bytes(packed_networks());
    return plan_;
  }

 private:
  static std::vector<std::unique_ptr<Policy>> make_policies(const PlannedPrompt& prompt) {
    std::vector<std::unique_ptr<Policy>> policies;
    for (const SessionOptions& s : prompt.sessions) policies.push_back(Policy::make(s.kv));
    return policies;
  }

  /// The networks whose products get different numbers of tokens, and are the library's: of each
  /// expert, and what all tokens pass through. Experts get other numbers in each chunk, of which
  /// three fit into what the library is allowed for a network.
  int64_t packed_networks() const {
    const ModelInfo& info = prompt_.info;
    const bool uses_library = plan_.packed_weights > 0 && !rounds_prompts(backend_, info.file_type);
    if (!uses_library || info.n_expert == 0) return 0;
    const int64_t n_chunks = (prompt_.n_tokens - 1) / prompt_.sessions[0].chunk + 1;
    return (info.n_expert + 1) * ((n_chunks + 2) / 3);
  }

  std::vector<int64_t> kept_rows(int il) const {
    std::vector<int64_t> rows;
    for (const auto& policy : policies_) {
      rows.push_back(layer_budget(prompt_.info.decoder->spec(), *policy, prompt_.n_tokens, il));
    }
    return rows;
  }

  void read() {
    const SessionOptions& options = prompt_.sessions[0];
    PrefillPlan plan;
    plan.n_tokens = prompt_.n_tokens;
    plan.chunk = std::min(plan.n_tokens, options.chunk);
    plan.n_skipped = plan.n_tokens - plan.chunk;
    plan.n_logits = std::min(plan.n_tokens, prompt_.n_logits);
    plan.share = attention_share(options);
    const std::string& file_type = prompt_.info.file_type;
    plan.packed = packs_weights(backend_, file_type, plan.n_tokens);
    plan.packed_at_use = packs_at_use(backend_, file_type, plan.n_tokens, options.chunk);
    plan.hidden_place = prompt_.hidden_place;
    const bool again = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& session) {
      return wants_replays(sample_.spec(), *session->policy, plan.n_tokens);
    });
    if (again) {
      plan.replays = {longest_replay(plan.n_tokens)};
      plan.n_replayed = most_replayed(plan.n_tokens);
    }
    const std::vector<int32_t> tokens(plan.chunk, 0);
    plan.tokens = tokens;
    const PrefillPrompt prompt;
    std::vector<Session::Impl*> sessions;
    for (const auto& session : sessions_) sessions.push_back(session.get());
    PrefillTimes times;
    PrefillRun::Segments segments;
    segments.push_back(std::make_unique<PrefillSegment>(prompt, plan, sessions, times));
    PrefillRun run(std::move(segments), times);
    bool done = false;
    while (!done) {
      done = run.step();  // a layer
      plan_.kv_scratch = std::max(plan_.kv_scratch, run.segment(0).scratch_bytes());
    }
    run.commit();
  }

  /// Adds what a session keeps of the prompt.
  void count_kept(const Session::Impl& session) {
    size_t history = 0, largest = 0;
    for (int il = 0; il < std::ssize(session.layers); ++il) {
      plan_.kv_kept += session.layers[il]->bytes() * sample_.count(il);
      if (!session.draft_states.empty() && session.draft_states[il] != nullptr) {
        plan_.kv_kept += session.draft_states[il]->bytes() * sample_.count(il);
      }
      if (!session.has_history(il)) continue;
      history += session.history[il]->bytes() * sample_.count(il);
      largest = std::max(largest, session.history[il]->bytes());
    }
    // if spilled, two layers are in memory: the current one and the one that is read ahead
    plan_.kv_history += session.options.spill_dir.empty() ? history : 2 * largest;
  }

  const PlannedPrompt& prompt_;
  MeasuringBackend backend_;                       // before all that allocates
  std::vector<std::unique_ptr<Policy>> policies_;  // until the sessions have them
  LayerSample sample_;
  std::vector<std::unique_ptr<Session::Impl>> sessions_;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan rehearse(const PlannedPrompt& prompt, const DeviceTraits& device) {
  return Rehearsal(prompt, device).run();
}

}  // namespace snapkv
