// SPDX-License-Identifier: MIT
#include "eval/common/prompt_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace snapkv::eval {
namespace {

// The tokens that must be read for the policy's window, which a prefix cannot replace.
int64_t window_of(const Session& session) {
  return std::max<int64_t>(1, policy_window(session.options().kv));
}

// The number of tokens that two prompts share at their beginnings.
int64_t count_common(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin();
}

// Reads a prompt into sessions and returns its rows as computed.
std::shared_ptr<const KvPrefix> read_and_keep(std::span<Session* const> sessions,
                                              std::span<const int32_t> tokens,
                                              const ProgressFn& progress) {
  PrefillPrompt prompt;
  prompt.sessions.assign(sessions.begin(), sessions.end());
  prompt.tokens.assign(tokens.begin(), tokens.end());
  prompt.options.progress = progress;
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  return prefill.take_prefix();
}

// The context's rows from a file in stored_kv_type(), written as by `snapkv compress --keep-full`.
std::shared_ptr<const KvPrefix> store_context(const RunOptions& run, const SessionOptions& options,
                                              std::span<const int32_t> context) {
  Session session(run.model, options);
  Session* const sessions[] = {&session};
  const auto rows = read_and_keep(sessions, context, run.prefill_progress);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/context.kv";
  rows->save(path, stored_kv_type(run.model->info()));
  return KvPrefix::load(run.model, path);  // stays mapped after the file is removed
}

}  // namespace

void PromptReader::read(std::span<Session* const> sessions, const Prompt& prompt, bool keeps) {
  const std::span<const int32_t> tokens(prompt.tokens);
  if (!run_.question_agnostic && !run_.keeps_full) {
    read_aware(sessions, tokens, keeps);
    return;
  }
  SNAPKV_CHECK(prompt.n_context > 0 && prompt.n_context < std::ssize(prompt.tokens));
  if (run_.keeps_full) {
    read_stored(sessions, tokens, prompt.n_context, keeps);
  } else {
    read_agnostic(sessions, tokens, prompt.n_context, keeps);
  }
}

void PromptReader::forget() {
  prefix_.reset();
  context_.clear();
  states_.clear();
}

void PromptReader::read_aware(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                              bool keeps) {
  std::vector<Session*> sharing, whole;  // whole: policies that observe all queries need them all
  int64_t window = 1;
  for (Session* session : sessions) {
    const bool observes = policy_info(session->options().kv.name).observes;
    (observes ? whole : sharing).push_back(session);
    if (!observes) window = std::max(window, window_of(*session));
  }
  const int64_t n_tokens = std::ssize(tokens);
  const int64_t n_shared =
      prefix_ == nullptr
          ? 0
          : prefix_->last_cut(std::min(count_common(prefix_->tokens(), tokens), n_tokens - window));
  if (!sharing.empty() && n_shared > n_tokens / 2) {
    prefill_many(sharing, tokens,
                 {.progress = run_.prefill_progress, .prefix = prefix_, .n_from_prefix = n_shared});
    if (!whole.empty()) prefill_many(whole, tokens, {.progress = run_.prefill_progress});
    return;
  }
  prefix_.reset();  // frees its memory before the next one is made
  if (keeps && !sharing.empty()) {
    prefix_ = read_and_keep(sessions, tokens, run_.prefill_progress);
  } else {
    prefill_many(sessions, tokens, {.progress = run_.prefill_progress});
  }
}

void PromptReader::read_stored(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                               int64_t n_context, bool keeps) {
  const auto context = tokens.first(static_cast<size_t>(n_context));
  if (prefix_ == nullptr || !std::ranges::equal(prefix_->tokens(), context)) {
    prefix_.reset();
    prefix_ = store_context(run_, sessions[0]->options(), context);
  }
  for (Session* session : sessions) {
    const int64_t n =
        prefix_->last_cut(std::min(n_context, std::ssize(tokens) - window_of(*session)));
    // The prompt fits into the window, whose queries are computed anyway.
    if (n < 1) {
      session->prefill(tokens, {});
    } else {
      session->prefill(tokens, {.prefix = prefix_, .n_from_prefix = n});
    }
  }
  if (!keeps) prefix_.reset();
}

void PromptReader::read_agnostic(std::span<Session* const> sessions,
                                 std::span<const int32_t> tokens, int64_t n_context, bool keeps) {
  const auto context = tokens.first(static_cast<size_t>(n_context));
  if (!std::ranges::equal(context_, context)) {
    forget();
    context_.assign(context.begin(), context.end());
  }
  std::vector<Session*> fresh;
  for (Session* session : sessions) {
    const auto found = states_.find(to_line(configuration_json(session->options())));
    if (found == states_.end()) {
      fresh.push_back(session);
    } else {
      session->load(*found->second.file);
    }
  }
  if (!fresh.empty()) compress_context(fresh, context, keeps);
  for (Session* session : sessions) {
    session->prefill(tokens.subspan(static_cast<size_t>(n_context)), {.compress = false});
  }
}

void PromptReader::compress_context(std::span<Session* const> sessions,
                                    std::span<const int32_t> context, bool keeps) {
  prefill_many(sessions, context, {.progress = run_.prefill_progress});
  if (!keeps) return;
  for (const Session* session : sessions) {
    if (session->options().kv_refresh) continue;  // a saved session does not contain its history
    Compressed& state = states_[to_line(configuration_json(session->options()))];
    const std::string path = state.folder.path() + "/context.kv";
    session->save(path);
    state.file = std::make_unique<SavedSessionFile>(path);
  }
}

}  // namespace snapkv::eval
