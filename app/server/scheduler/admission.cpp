// SPDX-License-Identifier: MIT
#include "server/scheduler/admission.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "chat/document.h"
#include "server/scheduler/failure_kind.h"

namespace snapkv::server {
namespace {

/// Prompts that share fewer first tokens than this are read whole.
constexpr int64_t kLeastReuse = 16;
/// A prompt of which at most this share was new makes no prefix of its own: the next prompt finds
/// nearly as much in the existing one. But a prompt that goes on where a prefix ends makes one that
/// replaces it and shares its rows, which takes no more than a copy of the new ones.
constexpr double kNewShare = 0.1;

std::vector<Session*> pointers(const std::vector<std::unique_ptr<Session>>& sessions) {
  std::vector<Session*> all;
  for (const auto& session : sessions) all.push_back(session.get());
  return all;
}

static_assert(std::is_nothrow_move_constructible_v<PrefillPrompt>, "else vectors copy them");

/// Makes the prompt report each token's probability: that which the logits of the one before it
/// give. Moving the prompt does not move its tokens.
void score_tokens(Job& job, PrefillPrompt& prompt) {
  const Model& model = job.sessions[0]->model();
  const std::span<const int32_t> tokens = prompt.tokens;
  job.scores.clear();
  job.scores.push_back({{tokens[0], model.piece(tokens[0], true), 0.0}, {}});
  prompt.options.n_logits = std::ssize(tokens);
  prompt.options.on_logits = [&job, &model, tokens](int64_t token, std::span<const float> logits) {
    const auto next = static_cast<size_t>(token) + 1;
    if (next == tokens.size()) return;
    job.scores.push_back(
        reported_token(model, token_logprobs(logits, tokens[next], job.request.top_logprobs)));
  };
}

/// The tokens of the policy's window, which are computed even if the rows are there.
int64_t window_size(const Request& request) {
  return std::max(1, policy_window(request.session.kv));
}

/// Undoes what admit() has done.
void put_off(Job& job) {
  job.memory.release();
  job.sessions.clear();
  job.prefix = {};
}

}  // namespace

Admission::Group Admission::next(Running running) {
  Group group;
  while (!waiting_.empty()) {
    Job& job = *waiting_.front();
    if (job.client->cancelled() || job.expired()) break;  // the next round drops it
    const bool joins = !group.jobs.empty();
    if (joins && (job.alone || group.jobs.front()->alone)) break;
    try {
      std::optional<PrefillPrompt> prompt = admit(job, joins, running);
      if (!prompt) break;
      if (job.request.read) {
        running.n_answers += job.request.n;
        running.frees_memory = true;
        group.ready.splice(group.ready.end(), waiting_, waiting_.begin());
        continue;
      }
      group.prompts.push_back(std::move(*prompt));
      if (joins && !Prefill::may_share(group.prompts)) {
        group.prompts.pop_back();
        put_off(job);
        break;
      }
    } catch (const std::exception& e) {  // of the file system too: a document may be gone by now
      fail_job(job, failure_kind(e), failure_text(e), counts_);
      group.prompts.resize(group.jobs.size());
      waiting_.pop_front();
      continue;
    }
    running.n_answers += job.request.n;
    running.frees_memory = true;
    group.jobs.splice(group.jobs.end(), waiting_, waiting_.begin());
    if (std::ssize(group.prompts.front().tokens) > options_.session.chunk) break;
  }
  return group;
}

std::optional<PrefillPrompt> Admission::admit(Job& job, bool joins, const Running& running) {
  const Request& request = job.request;
  if (joins && !request.read &&
      (std::ssize(request.prompt.tokens) > options_.session.chunk || request.document ||
                options_.reuse == Reuse::append)) {
    return std::nullopt;
  }
  if (running.n_answers + request.n > options_.n_parallel) return std::nullopt;
  const RequestPlan& plan = job.plan;
  // prefers free memory: kept sessions and prefixes are dropped only if there is too little
  if (!store_.reserve(job.memory, {.running = plan.running_bytes, .reading = plan.reading_bytes})) {
    if (!running.frees_memory) {
      fail(ErrorCode::kDoesNotFit, "the request does not fit into the server's memory");
    }
    return std::nullopt;
  }
  job.paid_tokens = plan.paid_tokens;
  PrefillPrompt prompt = begin_prompt(job);
  job.n_total = job.sessions[0]->n_past() + std::ssize(prompt.tokens);
  if (!request.read) decide_prefix(job);
  prompt.makes_prefix = job.makes_prefix;
  job.began = Clock::now();
  return prompt;
}

PrefillPrompt Admission::begin_prompt(Job& job) {
  const Request& request = job.request;
  const Document* const document = request.document.get();
  job.sessions.clear();
  job.prefix = {};
  job.n_reused = 0;
  job.compress_seconds_before = 0;
  PrefillPrompt prompt;
  if (request.read) {
    for (int i = 0; i < request.n; ++i) {
      job.sessions.push_back(std::make_unique<Session>(model_, request.session));
      job.sessions.back()->load(*request.read);
    }
    job.n_reused = job.sessions[0]->n_past();
    return prompt;
  }
  if (std::optional<std::vector<int32_t>> rest = continue_kept(job)) {
    prompt.tokens = std::move(*rest);
  } else {
    if (document != nullptr && document->rows) {
      const std::span<const int32_t> read = document->rows->tokens();
      prompt.tokens.assign(read.begin(), read.end());
    }
    prompt.tokens.insert(prompt.tokens.end(), request.prompt.tokens.begin(),
                         request.prompt.tokens.end());
    for (int i = 0; i < request.n; ++i) {
      job.sessions.push_back(std::make_unique<Session>(model_, request.session));
      if (document != nullptr && document->compressed) {
        job.sessions.back()->load(*document->compressed);
        job.n_reused = job.sessions.back()->n_past();
      }
    }
    find_prefix(job);
  }
  prompt.sessions = pointers(job.sessions);
  prompt.options.prefix = job.prefix.prefix;
  prompt.options.n_from_prefix = job.prefix.n_tokens;
  // a question after a compressed document is kept whole
  prompt.options.compress = document == nullptr || document->file.keeps_all;
  if (request.scores_prompt) score_tokens(job, prompt);
  return prompt;
}

std::optional<std::vector<int32_t>> Admission::continue_kept(Job& job) {
  const Request& request = job.request;
  if (options_.reuse != Reuse::append || request.document || !request.reuses || request.n != 1) {
    return std::nullopt;
  }
  std::optional<Continuation> more = store_.take(*model_, request);
  if (!more) return std::nullopt;
  job.n_reused = more->kept.session->n_past();
  job.compress_seconds_before = compress_seconds(*more->kept.session);
  job.sessions.push_back(std::move(more->kept.session));
  return std::move(more->tokens);
}

/// Finds the rows of the prompt's beginning: its document's, or those of a prompt that began alike.
void Admission::find_prefix(Job& job) {
  const Request& request = job.request;
  const std::span<const int32_t> tokens = request.prompt.tokens;
  PrefixStore::Match match;
  if (request.document) {
    if (!request.document->rows) return;
    match.prefix = request.document->rows;
    const int64_t n_document = std::ssize(match.prefix->tokens());
    match.n_alike = std::min(n_document, n_document + std::ssize(tokens) - window_size(request));
    match.n_tokens = match.prefix->last_cut(match.n_alike);
    if (match.n_tokens < 1) return;
  } else {
    if (!request.reuses || policy_info(request.session.kv.name).observes) return;
    match = store_.find_prefix(tokens, job.sessions[0]->n_ctx());
    if (match.prefix == nullptr) return;
    match.n_alike = std::min(match.n_alike, std::ssize(tokens) - window_size(request));
    match.n_tokens = match.prefix->last_cut(match.n_alike);
    if (match.n_tokens < kLeastReuse) return;
  }
  job.n_reused = match.n_tokens;
  job.prefix = std::move(match);
}

/// Decides whether the rows of this prompt are kept for others, and reserves their memory.
void Admission::decide_prefix(Job& job) {
  const Request& request = job.request;
  const int64_t n_prompt = std::ssize(request.prompt.tokens);
  KvPrefix::Shared shared;
  if (job.prefix.prefix) shared = job.prefix.prefix->shared(job.prefix.n_tokens);
  const size_t bytes =
      KvPrefix::bytes_for(model_->info(), request.session, n_prompt - shared.n_tokens);
  const bool may_keep = store_.may_keep_prefix(shared.bytes + bytes) && request.reuses &&
                        !request.document &&
                        (job.snapshot_path.empty() || request.is_for_others);
  const int64_t n_new = n_prompt - job.n_reused;
  const bool is_new = job.prefix.goes_on()
                          ? n_new >= kLeastReuse
                          : static_cast<double>(n_new) > kNewShare * static_cast<double>(n_prompt);
  job.makes_prefix = may_keep && n_prompt >= 2 * kLeastReuse && is_new &&
                     store_.reserve(job.memory, {.prefix = bytes});
  if (request.keeps_all) job.makes_prefix = true;  // its memory is part of the plan
}

void Admission::drop_lost() {
  waiting_.remove_if([&](const std::unique_ptr<Job>& job) { return end_if_lost(*job, counts_); });
}

}  // namespace snapkv::server
