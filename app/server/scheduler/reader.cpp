// SPDX-License-Identifier: MIT
#include "server/scheduler/reader.h"

#include <algorithm>
#include <new>
#include <utility>

#include "server/scheduler/failure_kind.h"

namespace snapkv::server {
namespace {

/// Seconds between two progress reports.
constexpr double kReportInterval = 0.2;

KvReport report_of(const Job& job) {
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
  const ModelInfo& info = session.model().info();
  for (int il = 0; il < info.n_layer; ++il) {
    auto& heads = kv.positions.emplace_back();
    for (int h = 0; h < info.layers[il].n_head_kv; ++h) {
      heads.push_back(session.cached_positions(il, h));
    }
  }
  return kv;
}

/// Frees what was reserved for rows that the policy did not keep.
void free_rows_not_kept(Job& job) {
  size_t kept = 0;
  for (const auto& session : job.sessions) kept += session->stats().kv_bytes;
  if (job.plan.most_kept_bytes > kept) job.memory.end_part(job.plan.most_kept_bytes - kept);
}

}  // namespace

Jobs Reader::begin(Admission::Group group) {
  jobs_ = std::move(group.jobs);
  try {
    prefill_.emplace(std::move(group.prompts));
  } catch (const std::exception& e) {
    return fail_all(failure_kind(e), failure_text(e));
  }
  return {};
}

Reader::Outcome Reader::read_for(double seconds) {
  const Clock::time_point begin = Clock::now();
  Outcome outcome;
  try {
    do {
      const bool done = prefill_->step();
      report_progress();
      if (done) outcome.read = finish();
    } while (prefill_ && seconds_since(begin) < seconds);
  } catch (const std::bad_alloc&) {
    outcome.again = fail_all(Failure::Kind::does_not_fit, "the system has no more memory");
  } catch (const std::exception& e) {
    outcome.again = fail_all(failure_kind(e), failure_text(e));
  }
  return outcome;
}

void Reader::report_progress() {
  for (const auto& job : jobs_) {
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

/// Returns jobs that were read together, for another try one by one; a job that was read alone has
/// failed.
Jobs Reader::fail_all(Failure::Kind kind, const std::string& message) {
  prefill_.reset();
  const bool retry = jobs_.size() > 1;
  for (const auto& job : jobs_) {
    job->memory.release();
    job->sessions.clear();
    job->prefix = {};
    job->alone = retry;
    if (!retry) fail_job(*job, kind, message, counts_);
  }
  Jobs again = std::exchange(jobs_, {});
  if (!retry) again.clear();
  return again;
}

Jobs Reader::finish() {
  size_t index = 0;
  for (const auto& job : jobs_) finish(*job, index++);
  prefill_.reset();
  for (const auto& job : jobs_) {
    job->memory.end_reading();
    job->prefix = {};
    free_rows_not_kept(*job);
  }
  return std::exchange(jobs_, {});
}

/// Takes a job's results, and tells its client that the prompt has been read.
void Reader::finish(Job& job, size_t index) {
  if (auto prefix = prefill_->take_prefix(index); prefix && job.request.keeps_all) {
    job.document = std::move(prefix);
  } else if (prefix) {
    store_.add_prefix(std::move(prefix), job.sessions[0]->n_ctx());
  }
  report_read(job);
}

void Reader::take_read(Job& job) {
  report_read(job);
  job.memory.end_reading();
}

void Reader::report_read(Job& job) {
  const KvReport kv = report_of(job);
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
  for (size_t i = 0; i < job.sessions.size() && !job.scores.empty(); ++i) {
    job.client->push(AnswerPart{.choice = i, .text = "", .tokens = job.scores, .of_prompt = true});
  }
  job.scores.clear();
}

void Reader::drop_lost() {
  const bool all_lost = std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return job->client->cancelled() || job->expired();
  });
  if (!all_lost) return;
  prefill_.reset();
  for (const auto& job : jobs_) end_if_lost(*job, counts_);
  jobs_.clear();
}

void Reader::cancel_all() {
  prefill_.reset();
  server::cancel_all(jobs_);
}

bool Reader::holds_prefix() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return job->memory.bytes().prefix > 0 || (job->prefix.prefix && !job->request.document);
  });
}

}  // namespace snapkv::server
