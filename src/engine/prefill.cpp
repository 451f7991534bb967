// SPDX-License-Identifier: MIT
// Layer-major prefill (docs/architecture.md): every layer runs over the whole prompt in chunks,
// with one scratch layer for the keys and values of all tokens. Then the policies select, and the
// kept rows move to the sessions' caches. No session changes for good before the last layer is
// done.
#include "snapkv/prefill.h"

#include <algorithm>

#include "base/error.h"
#include "engine/core/sessions_in_use.h"
#include "engine/plan/plan_prefill.h"
#include "engine/prefill/prefill_run.h"

namespace snapkv {

struct Prefill::Impl {
  explicit Impl(std::vector<PrefillPrompt> given);
  bool step();

  std::vector<PrefillPrompt> prompts;
  std::vector<std::shared_ptr<Session::Impl>> owners;  // for sessions destroyed meanwhile
  std::vector<std::vector<Session::Impl*>> sessions;   // [prompts]
  std::vector<Session::Impl*> all;                     // of every prompt
  std::unique_ptr<SessionsInUse> in_use;               // until the prompts have been read
  PrefillTimes times;
  std::unique_ptr<PrefillRun> run;
  bool stepping = false;  // inside step(), whose callbacks must not call it
  bool done = false;
};

Prefill::Impl::Impl(std::vector<PrefillPrompt> given) : prompts(std::move(given)) {
  if (prompts.empty()) fail(ErrorCode::kUsage, "prefill: there is no prompt");
  for (const PrefillPrompt& prompt : prompts) {
    sessions.push_back(Session::states(prompt.sessions, "prefill"));
    all.insert(all.end(), sessions.back().begin(), sessions.back().end());
    for (const Session* session : prompt.sessions) owners.push_back(session->impl_);
    if (prompt.makes_prefix && !sessions.back().empty() && sessions.back()[0]->n_past > 0) {
      fail(ErrorCode::kUsage, "makes_prefix: the session has read {} tokens already",
           sessions.back()[0]->n_past);
    }
  }
  for (size_t i = 0; i < all.size() && prompts.size() > 1; ++i) {
    if (std::count(all.begin(), all.end(), all[i]) > 1) {
      fail(ErrorCode::kUsage, "prefill: session {} of {} is there twice", i, all.size());
    }
  }
  in_use = std::make_unique<SessionsInUse>(all, "prefill");
  for (size_t i = 0; i < prompts.size(); ++i) {
    for (Session::Impl* const s : sessions[i]) s->note_room(std::ssize(prompts[i].tokens));
  }
  if (prompts.size() > 1 && !may_share(prompts)) {
    fail(ErrorCode::kUsage, "prefill: these {} prompts can't be computed together", prompts.size());
  }
  PrefillRun::Segments segments;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const PrefillPrompt& prompt = prompts[i];
    const PrefillPlan plan =
        plan_prefill(sessions[i], prompt.tokens, prompt.options, prompt.makes_prefix);
    segments.push_back(std::make_unique<PrefillSegment>(prompt, plan, sessions[i], times));
  }
  run = std::make_unique<PrefillRun>(std::move(segments), times);
}

Prefill::Prefill(PrefillPrompt prompt) {
  std::vector<PrefillPrompt> prompts;
  prompts.push_back(std::move(prompt));
  impl_ = std::make_unique<Impl>(std::move(prompts));
}
Prefill::Prefill(std::vector<PrefillPrompt> prompts)
    : impl_(std::make_unique<Impl>(std::move(prompts))) {}
Prefill::~Prefill() = default;
Prefill::Prefill(Prefill&&) noexcept = default;
Prefill& Prefill::operator=(Prefill&&) noexcept = default;

bool Prefill::may_share(std::span<const PrefillPrompt> prompts) {
  if (prompts.empty() || prompts[0].sessions.empty()) return false;
  const Session::Impl& first = *Session::states(prompts[0].sessions, "may_share")[0];
  const auto packed = [&](const PrefillPrompt& prompt) {
    return packs_weights(first, std::ssize(prompt.tokens));
  };
  int64_t n_tokens = 0;
  for (const PrefillPrompt& prompt : prompts) {
    const int64_t n_from_prefix = prompt.options.n_from_prefix;
    if (n_from_prefix < 0 || n_from_prefix > std::ssize(prompt.tokens)) return false;
    n_tokens += std::ssize(prompt.tokens) - n_from_prefix;
    if (prompt.options.probe != nullptr || packed(prompt) != packed(prompts[0])) return false;
    for (const Session::Impl* session : Session::states(prompt.sessions, "may_share")) {
      const Session::Impl& s = *session;
      const bool replays = prompt.options.compress && s.policy->info().replays;
      if (replays || s.model != first.model || s.options.kv_type != first.options.kv_type ||
          s.options.chunk != first.options.chunk || !s.options.spill_dir.empty() ||
          !s.architecture().spec().rotate_alike(s.n_ctx, first.n_ctx)) {
        return false;
      }
    }
  }
  return n_tokens <= first.options.chunk;
}

Prefill::Impl& Prefill::state() const {
  if (impl_ == nullptr) fail(ErrorCode::kUsage, "prefill: it was moved from");
  return *impl_;
}

bool Prefill::step() {
  Impl& impl = state();
  if (impl.done) fail(ErrorCode::kUsage, "prefill: there is nothing to read");
  if (impl.stepping) fail(ErrorCode::kUsage, "prefill: a callback of step() can't call it");
  struct Stepping {
    bool& flag;
    explicit Stepping(bool& f) : flag(f) { flag = true; }
    ~Stepping() { flag = false; }
  } const stepping(impl.stepping);
  return impl.step();
}

bool Prefill::Impl::step() {
  if (!run->step()) return false;
  all[0]->parts.file->check_unchanged();  // if the file changed, the result may be wrong
  run->commit();
  for (size_t i = 0; i < prompts.size(); ++i) {
    for (Session::Impl* const s : sessions[i]) s->note(prompts[i].tokens);
  }
  in_use.reset();
  done = true;
  return true;
}

double Prefill::fraction() const { return state().done ? 1.0 : state().run->fraction(); }

std::shared_ptr<const KvPrefix> Prefill::take_prefix(size_t i) {
  const size_t n = state().prompts.size();
  if (i >= n) fail(ErrorCode::kUsage, "take_prefix: there is no prompt {}, there are {}", i, n);
  return state().run->segment(i).take_prefix();
}

void prefill_many(std::span<Session* const> batch, std::span<const int32_t> tokens,
                  const PrefillOptions& options) {
  PrefillPrompt prompt;
  prompt.sessions.assign(batch.begin(), batch.end());
  prompt.tokens.assign(tokens.begin(), tokens.end());
  prompt.options = options;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
}

void prefill_after(Session& session, std::shared_ptr<const KvPrefix> prefix,
                   std::span<const int32_t> tokens, const ProgressFn& progress) {
  if (prefix == nullptr) fail(ErrorCode::kUsage, "prefill_after: the prefix is null");
  const std::span<const int32_t> before = prefix->tokens();
  std::vector<int32_t> all(before.begin(), before.end());
  all.insert(all.end(), tokens.begin(), tokens.end());
  const int64_t window_size = std::max(1, policy_window(session.options().kv));
  const int64_t n = prefix->last_cut(std::min(std::ssize(before), std::ssize(all) - window_size));
  // everything fits into the window, whose queries are computed anyway
  if (n < 1) return session.prefill(all, {.progress = progress});
  session.prefill(all, {.progress = progress, .prefix = std::move(prefix), .n_from_prefix = n});
}

}  // namespace snapkv
