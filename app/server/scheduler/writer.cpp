// SPDX-License-Identifier: MIT
#include "server/scheduler/writer.h"

#include <algorithm>
#include <utility>

#include "server/scheduler/failure_kind.h"

namespace snapkv::server {

void Writer::begin(Jobs jobs) {
  for (const auto& job : jobs) begin(*job);
  jobs_.splice(jobs_.end(), jobs);
  finish();
}

void Writer::begin(Job& job) {
  const int64_t most_tokens = job.plan.most_tokens;
  try {
    for (size_t i = 0; i < job.sessions.size(); ++i) {
      const Session& session = *job.sessions[i];
      const int64_t room = session.n_ctx() - session.n_past();
      job.answers.emplace_back(std::move(job.sessions[i]), job.request, i,
                               std::min(most_tokens, room), job.matcher);
    }
    job.sessions.clear();
    for (RunningAnswer& answer : job.answers) {
      if (most_tokens == 0) {  // the client wanted only the prompt to be read
        answer.end_at_length(*job.client);
        continue;
      }
      answer.choose(*job.client);
      ++counts_.n_generated_tokens;
    }
  } catch (const std::exception& e) {
    fail_job(job, failure_kind(e), failure_text(e), counts_);
  }
}

bool Writer::step(bool memory_comes_back) {
  const Clock::time_point begin = Clock::now();
  std::vector<Job*> jobs;
  std::vector<RunningAnswer*> answers;
  for (const auto& job : jobs_) {
    if (job->failed || job->client->cancelled()) continue;
    if (!pay_for_next_token(*job, memory_comes_back)) continue;
    for (RunningAnswer& answer : job->answers) {
      if (answer.done()) continue;
      jobs.push_back(job.get());
      answers.push_back(&answer);
    }
  }
  if (!answers.empty()) {
    decode(jobs, answers);
    ++counts_.n_decode_steps;
    counts_.decode_seconds += seconds_since(begin);
  }
  finish();
  return !answers.empty();
}

void Writer::decode(std::vector<Job*>& jobs, std::vector<RunningAnswer*>& answers) {
  const auto failed = [&](const std::exception& e) {
    if (answers.size() == 1) {
      fail_job(*jobs[0], failure_kind(e), failure_text(e), counts_);
      return;
    }
    for (size_t i = 0; i < answers.size(); ++i) {  // continue with the answers that still can
      if (jobs[i]->failed) continue;
      std::vector<Job*> job = {jobs[i]};
      std::vector<RunningAnswer*> answer = {answers[i]};
      decode(job, answer);
    }
  };
  try {
    std::vector<Generator*> generators;
    for (RunningAnswer* answer : answers) generators.push_back(&answer->generator());
    Generator::guess(generators);
    std::vector<Session*> sessions;
    std::vector<StepTokens> tokens;
    for (RunningAnswer* answer : answers) {
      sessions.push_back(&answer->session());
      tokens.push_back(answer->next_tokens());
    }
    decode_steps(sessions, tokens);
  } catch (const std::exception& e) {
    return failed(e);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (jobs[i]->failed) continue;
    try {
      const int64_t n_drafted = answers[i]->n_drafted(), n_accepted = answers[i]->n_accepted();
      counts_.n_generated_tokens += answers[i]->choose_all(*jobs[i]->client);
      counts_.n_drafted_tokens += answers[i]->n_drafted() - n_drafted;
      counts_.n_accepted_tokens += answers[i]->n_accepted() - n_accepted;
      counts_.longest_gap_seconds =
          std::max(counts_.longest_gap_seconds, answers[i]->longest_gap());
    } catch (const std::exception& e) {
      fail_job(*jobs[i], failure_kind(e), failure_text(e), counts_);
    }
  }
}

/// Reserves memory for more tokens when the next step may use up what is reserved; returns false if
/// there is none. The answers, which had no limit of their own, then end, or wait if memory comes back.
bool Writer::pay_for_next_token(Job& job, bool memory_comes_back) {
  int64_t n_longest = 0;
  for (const RunningAnswer& answer : job.answers) {
    if (!answer.done()) n_longest = std::max(n_longest, answer.n_generated());
  }
  const SessionOptions& options = job.request.session;
  const int64_t most_guessed = options.draft == Draft::off ? 0 : options.draft_max;
  const bool is_all = job.paid_tokens >= job.plan.most_tokens;
  if (n_longest + (is_all ? 0 : most_guessed) < job.paid_tokens) return true;
  const int64_t more = std::min(kPaidTokens, job.plan.most_tokens - job.paid_tokens);
  const size_t bytes = static_cast<size_t>(more) * token_bytes(*model_, job.request);
  if (more > 0 && store_.reserve(job.memory, {.running = bytes})) {
    job.paid_tokens += more;
    return true;
  }
  if (more > 0 && memory_comes_back) return false;
  for (RunningAnswer& answer : job.answers) {
    if (!answer.done()) answer.end_at_length(*job.client);
  }
  return false;
}

/// Ends the jobs whose answers are written, and keeps their sessions.
void Writer::finish() {
  bool had_grammar = false;
  jobs_.remove_if([&](const std::unique_ptr<Job>& job) {
    if (!job->done()) return false;
    had_grammar = had_grammar || job->matcher.has_value();
    job->memory.release();
    keep(*job);
    return true;
  });
  if (had_grammar) grammars_.trim();
}

/// Keeps the session of a conversation that may continue.
void Writer::keep(Job& job) {
  Request& request = job.request;
  if (options_.reuse != Reuse::append || !request.reuses || request.n != 1) return;
  if (request.document) return;  // the document's tokens are not in the conversation's text
  RunningAnswer& answer = job.answers[0];
  KeptSession kept;
  kept.id = job.id;
  kept.request = request.id;
  kept.options = request.session;
  kept.unread = answer.unread();
  if (std::string& text = request.prompt.chat.text; !text.empty()) {
    kept.prompt_bytes = text.size();
    kept.text = std::move(text) + answer.raw_text();
    kept.input = std::move(request.prompt.chat.input);
  }
  kept.tokens = std::move(request.prompt.tokens);
  const std::vector<int32_t> read = answer.read_tokens();
  kept.tokens.insert(kept.tokens.end(), read.begin(), read.end());
  kept.session = answer.take_session();
  kept.bytes = session_bytes(*kept.session);
  store_.keep(std::move(kept));
}

void Writer::drop_lost() {
  bool had_grammar = false;
  jobs_.remove_if([&](const std::unique_ptr<Job>& job) {
    if (!end_if_lost(*job, counts_)) return false;
    had_grammar = had_grammar || job->matcher.has_value();
    return true;
  });
  if (had_grammar) grammars_.trim();
}

}  // namespace snapkv::server
