// SPDX-License-Identifier: MIT
// The scheduler's thread: admitting requests and reading their prompts.
#include <algorithm>
#include <utility>

#include "server/scheduler/failure_kind.h"
#include "server/scheduler/loop.h"

namespace snapkv::server {
namespace {

/// Prompts that share fewer first tokens than this are read whole.
constexpr int64_t kLeastReuse = 16;
/// A prompt of which at most this share was new makes no prefix of its own: the next prompt finds
/// nearly as much in the existing one.
constexpr double kNewShare = 0.1;
/// The same for a prompt that goes on where a prefix ends. Its own replaces that one, so all it takes is a copy of the rows, and copying a token's rows is
/// hundreds of times faster than computing them.
constexpr double kNewShareOfTurn = 1.0 / 128;
/// Seconds between two progress reports.
constexpr double kReportInterval = 0.2;

std::vector<Session*> pointers(const std::vector<std::unique_ptr<Session>>& sessions) {
  std::vector<Session*> all;
  for (const auto& session : sessions) all.push_back(session.get());
  return all;
}

double compress_seconds(const Session& session) {
  return session.stats().score_seconds + session.stats().gather_seconds;
}

/// Each token's probability is that which the logits of the one before it give.
void score_tokens(Job& job, PrefillOptions& options) {
  const Model& model = job.sessions[0]->model();
  job.scores.clear();
  job.scores.push_back({{job.tokens[0], model.piece(job.tokens[0], true), 0.0}, {}});
  options.n_logits = std::ssize(job.tokens);
  options.on_logits = [&job, &model](int64_t token, std::span<const float> logits) {
    const auto next = static_cast<size_t>(token) + 1;
    if (next == job.tokens.size()) return;
    job.scores.push_back(reported_token(
        model, token_logprobs(logits, job.tokens[next], job.request.top_logprobs)));
  };
}

PrefillPrompt prompt_of(Job& job) {
  PrefillPrompt prompt;
  prompt.sessions = pointers(job.sessions);
  prompt.tokens = job.tokens;
  prompt.options.prefix = job.prefix.prefix;
  prompt.options.n_from_prefix = job.prefix.n_tokens;
  // a question after a compressed document is kept whole
  prompt.options.compress = !job.request.document || job.request.document->file.keeps_all;
  prompt.makes_prefix = job.makes_prefix;
  if (job.request.scores_prompt) score_tokens(job, prompt.options);
  return prompt;
}

}  // namespace

/// Begins with the request that has waited longest; short ones behind it are read together with it.
void Scheduler::Loop::begin_reading() {
  std::vector<PrefillPrompt> prompts;
  while (!waiting_.empty()) {
    Job& job = *waiting_.front();
    if (job.client->cancelled() || job.expired()) break;  // the next round drops it
    const bool joins = !prompts.empty();
    if (joins && (job.alone || reading_.front()->alone)) break;
    try {
      if (!admit(job, joins)) break;
      prompts.push_back(prompt_of(job));
      if (joins && !Prefill::may_share(prompts)) {
        prompts.pop_back();
        release(job);
        job.sessions.clear();
        job.prefix = {};
        break;
      }
    } catch (const std::exception& e) {  // of the file system too: a document may be gone by now
      fail_job(job, failure_kind(e), failure_text(e));
      release(job);
      waiting_.pop_front();
      continue;
    }
    reading_.splice(reading_.end(), waiting_, waiting_.begin());
    if (std::ssize(prompts.front().tokens) > options_.session.chunk) break;
  }
  if (prompts.empty()) return;
  try {
    prefill_.emplace(std::move(prompts));
  } catch (const std::exception& e) {
    reading_failed(failure_kind(e), failure_text(e));
  }
}

/// Reserves the memory that a request needs and makes its sessions; returns false if it has to
/// wait. `must_be_short`: it joins other prompts, which it must not affect.
bool Scheduler::Loop::admit(Job& job, bool must_be_short) {
  const Request& request = job.request;
  const int64_t n_prompt = std::ssize(request.prompt.tokens);
  if (must_be_short &&
      (n_prompt > options_.session.chunk || request.document || options_.reuse == Reuse::append)) {
    return false;
  }
  int n_answers = request.n;
  for (const Jobs* jobs : {&answering_, &reading_}) {
    for (const auto& other : *jobs) n_answers += other->request.n;
  }
  if (n_answers > options_.n_parallel) return false;
  const RequestPlan plan = plan_request(*model_, request);
  // prefers free memory: kept sessions and prefixes are dropped only if there is too little
  if (!make_room(plan.running_bytes + plan.reading_bytes)) {
    if (answering_.empty() && reading_.empty() && writing_.empty() && lent_bytes_ == 0) {
      throw Error(ErrorCode::kDoesNotFit, "the request does not fit into the server's memory");
    }
    return false;
  }
  job.running_bytes = plan.running_bytes;
  job.reading_bytes = plan.reading_bytes;
  memory_.running() += job.running_bytes;
  memory_.reading() += job.reading_bytes;
  job.most_tokens = plan.most_tokens;
  job.paid_tokens = plan.paid_tokens;
  choose_reuse(job);
  job.n_total = job.sessions[0]->n_past() + std::ssize(job.tokens);
  const bool may_keep = prefixes_.limit() >= plan.prefix_bytes && request.reuses &&
                        !request.document && job.snapshot_path.empty();
  const auto n_new = static_cast<double>(n_prompt - job.n_reused);
  const double new_share = job.prefix.goes_on() ? kNewShareOfTurn : kNewShare;
  job.makes_prefix = may_keep && n_prompt >= 2 * kLeastReuse &&
                     n_new > new_share * static_cast<double>(n_prompt) &&
                     make_room(plan.prefix_bytes);
  if (job.makes_prefix) {
    job.prefix_bytes = plan.prefix_bytes;
    memory_.reading() += job.prefix_bytes;
  }
  if (request.keeps_all) job.makes_prefix = true;  // its memory is part of the plan
  job.began = Clock::now();
  return true;
}

/// Makes the job's sessions, using what has already been read of its prompt.
void Scheduler::Loop::choose_reuse(Job& job) {
  Request& request = job.request;
  job.sessions.clear();
  job.prefix = {};
  job.n_reused = 0;
  job.makes_prefix = false;
  job.compress_seconds_before = 0;
  job.tokens = request.prompt.tokens;
  const Document* const document = request.document.get();
  if (document != nullptr && document->rows) {
    job.prefix.prefix = document->rows;
    const std::span<const int32_t> tokens = document->rows->tokens();
    job.tokens.insert(job.tokens.begin(), tokens.begin(), tokens.end());
    const int64_t window = std::max(1, policy_window(request.session.kv));
    job.n_reused = std::min(std::ssize(tokens), std::ssize(job.tokens) - window);
    job.prefix.n_tokens = job.n_reused;
  } else if (document == nullptr && options_.reuse == Reuse::append && request.reuses &&
             request.n == 1) {
    if (std::optional<Continuation> more = kept_.take(*model_, request)) {
      memory_.kept() -= more->kept.bytes;
      job.n_reused = more->kept.session->n_past();
      job.compress_seconds_before = compress_seconds(*more->kept.session);
      job.tokens = std::move(more->tokens);
      job.sessions.push_back(std::move(more->kept.session));
      return;
    }
  }
  for (int i = 0; i < request.n; ++i) {
    job.sessions.push_back(std::make_unique<Session>(model_, request.session));
    if (document == nullptr || !document->compressed) continue;
    job.sessions.back()->load(*document->compressed);
    job.n_reused = job.sessions.back()->n_past();
  }
  const PolicyInfo& policy = policy_info(request.session.kv.name);
  if (!request.reuses || document != nullptr || policy.observes) return;
  PrefixStore::Match match = prefixes_.find(job.tokens, job.sessions[0]->n_ctx());
  const int64_t window = std::max(1, policy_window(request.session.kv));
  match.n_tokens = std::min(match.n_tokens, std::ssize(job.tokens) - window);
  if (match.n_tokens < kLeastReuse) return;
  job.n_reused = match.n_tokens;
  job.prefix = std::move(match);
}

/// Reads for about `seconds`, but makes at least one step.
void Scheduler::Loop::read_for(double seconds) {
  const Clock::time_point begin = Clock::now();
  try {
    do {
      read_step();
    } while (prefill_ && seconds_since(begin) < seconds);
  } catch (const std::bad_alloc&) {
    reading_failed(Failure::Kind::does_not_fit, "the system has no more memory");
  } catch (const std::exception& e) {
    reading_failed(failure_kind(e), failure_text(e));
  }
  counts_.prefill_seconds += seconds_since(begin);
}

void Scheduler::Loop::read_step() {
  const bool done = prefill_->step();
  report_progress();
  if (done) finish_reading();
}

void Scheduler::Loop::report_progress() {
  for (const auto& job : reading_) {
    if (!job->request.reports_progress) continue;
    const double fraction = prefill_->fraction();
    if (fraction < 1 && seconds_since(job->reported) < kReportInterval) continue;
    job->reported = Clock::now();
    job->client->push(PromptProgress{.n_total = job->n_total,
                                     .n_reused = job->n_reused,
                                     .fraction = fraction,
                                     .seconds = seconds_since(job->began)});
  }
}

/// Retries jobs that were read together one by one; a job that was read alone has failed.
void Scheduler::Loop::reading_failed(Failure::Kind kind, const std::string& message) {
  prefill_.reset();
  const bool retry = reading_.size() > 1;
  for (const auto& job : reading_) {
    release(*job);
    job->sessions.clear();
    job->prefix = {};
    job->alone = retry;
    if (!retry) fail_job(*job, kind, message);
  }
  if (retry) {
    waiting_.splice(waiting_.begin(), reading_);
  } else {
    reading_.clear();
  }
}

void Scheduler::Loop::finish_reading() {
  size_t index = 0;
  for (const auto& job : reading_) finish_reading(*job, index++);
  prefill_.reset();
  for (auto& job : reading_) {
    memory_.reading() -= job->reading_bytes + job->prefix_bytes;
    job->reading_bytes = job->prefix_bytes = 0;
    job->prefix = {};
  }
  Jobs read = std::move(reading_);
  reading_.clear();
  for (auto& job : read) {
    if (!job->snapshot_path.empty()) {
      write_snapshot(std::move(job));
      continue;
    }
    begin_answers(*job);
    answering_.push_back(std::move(job));
  }
  finish_answers();
}

void Scheduler::Loop::finish_reading(Job& job, size_t index) {
  if (auto prefix = prefill_->take_prefix(index); prefix && job.request.keeps_all) {
    job.document = std::move(prefix);
  } else if (prefix) {
    prefixes_.add(std::move(prefix), job.sessions[0]->n_ctx());
    memory_.prefixes() = prefixes_.bytes();
  }
  const KvReport kv = report(job);
  const int64_t n_prompt = job.sessions[0]->n_past();
  counts_.n_prompt_tokens += n_prompt - job.n_reused;
  counts_.n_reused_tokens += job.n_reused;
  counts_.n_evicted_tokens += std::max<int64_t>(0, kv.tokens_before - kv.tokens_kept);
  counts_.compress_seconds += kv.compress_seconds;
  const double queued = std::chrono::duration<double>(job.began - job.submitted).count();
  job.client->push(PromptRead{.n_tokens = n_prompt,
                              .n_reused = job.n_reused,
                              .n_stored = job.makes_prefix ? n_prompt - job.n_reused : 0,
                              .seconds = seconds_since(job.began),
                              .queue_seconds = queued,
                              .kv = kv});
  for (int i = 0; i < job.request.n && !job.scores.empty(); ++i) {
    job.client->push(AnswerPart{.choice = i, .text = "", .tokens = job.scores, .of_prompt = true});
  }
  job.scores.clear();
}

KvReport Scheduler::Loop::report(const Job& job) const {
  const Session& session = *job.sessions[0];
  const SessionStats& stats = session.stats();
  KvReport kv;
  kv.policy = session.options().kv.name;
  kv.tokens_before = session.n_past();
  kv.bytes_before = stats.kv_bytes_full;
  kv.bytes_after = stats.kv_bytes_used;
  kv.compress_seconds = compress_seconds(session) - job.compress_seconds_before;
  kv.reused_tokens = job.n_reused;
  int64_t n_rows = 0, n_heads = 0;
  for (const SessionStats::Layer& layer : stats.layers) {
    for (const int64_t n : layer.n_kept) n_rows += n;
    n_heads += std::ssize(layer.n_kept);
  }
  if (n_heads > 0) kv.tokens_kept = (n_rows + n_heads / 2) / n_heads;
  if (!reports_positions(job.request.kv_report)) return kv;
  for (int il = 0; il < model_->info().n_layer; ++il) {
    auto& heads = kv.positions.emplace_back();
    for (int h = 0; h < model_->info().n_head_kv; ++h) {
      heads.push_back(session.cached_positions(il, h));
    }
  }
  return kv;
}

}  // namespace snapkv::server
