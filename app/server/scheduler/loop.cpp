// SPDX-License-Identifier: MIT
// The scheduler's thread: its queue, its rounds, and the calls of other threads. The work of a
// round is in reader.cpp and writer.cpp; files are in snapshot_writer.cpp and
// slot_files.cpp.
#include "server/scheduler/loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace snapkv::server {
namespace {

/// Number of grammars whose masks are kept for later requests.
constexpr size_t kMostMatchers = 16;

/// Memory limit if none was given: the memory the system reports as free, less the weights that
/// still have to move there, and less a margin for the bodies of requests and everything else.
size_t default_limit(const Model& model) {
  const size_t free = free_memory();
  return (free - std::min(free, model.weights_to_move())) / 10 * 8;
}

/// Default share of the memory for prefixes, as a divisor. They are dropped when the memory is
/// needed, but until then other programs can't have it.
constexpr size_t kPrefixShare = 8;

SchedulerOptions with_sizes(SchedulerOptions options, const Model& model) {
  if (options.kv_memory == 0) options.kv_memory = default_limit(model);
  if (!options.prefix_cache) options.prefix_cache = options.kv_memory / kPrefixShare;
  if (options.reuse != Reuse::refresh) options.prefix_cache = 0;
  return options;
}

}  // namespace

Scheduler::Loop::Loop(std::shared_ptr<const Model> model, const SchedulerOptions& options)
    : model_(std::move(model)),
      options_(with_sizes(options, *model_)),
      documents_(model_),
      bytes_for_all_(options_.kv_memory),
      memory_(options_.kv_memory),
      prefixes_(*options_.prefix_cache),
      thread_([this] { run_thread(); }) {}

Scheduler::Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Scheduler::Loop::complete_options(Request& request) const {
  const SessionOptions& own = options_.session;
  SessionOptions& session = request.session;
  session.kv_type = own.kv_type;
  session.chunk = own.chunk;
  session.n_ctx = own.n_ctx;
  session.spill_dir = own.spill_dir;
  session.memory_limit = 0;  // kv_memory takes the place of this limit
  session.kv_refresh = false;
  session.decode_reserve = own.decode_reserve;
  if (request.document && !request.document->file.keeps_all) {  // the rows are already chosen
    const SessionOptions& chosen = request.document->file.options;
    session.kv = chosen.kv;
    session.kv_memory = 0;
    session.kv_decode_limit = chosen.kv_decode_limit;
  }
  if (request.max_tokens > 0 && request.max_tokens < own.decode_reserve) {
    session.decode_reserve = request.max_tokens;
  }
}

/// Returns the bytes that a request needs. Throws Refused if it can never be served.
size_t Scheduler::Loop::check(const Request& request) const {
  using Kind = Refused::Kind;
  if (request.prompt.tokens.empty()) throw Refused(Kind::bad_request, "the prompt has no tokens");
  if (request.n < 1 || request.n > options_.n_parallel) {
    throw Refused(Kind::bad_request,
                  fmt::format("n is {}; this server writes 1 to {} answers at a time", request.n,
                              options_.n_parallel));
  }
  RequestPlan plan;
  try {
    plan = plan_request(*model_, request);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    throw Refused(Kind::bad_request, e.what());
  }
  const size_t needed = plan.running_bytes + plan.reading_bytes;
  if (needed <= memory_.limit()) return needed;
  throw Refused(
      Kind::never_fits,
      fmt::format("a prompt of {} tokens and its answer need {} MiB, this server has {} MiB for "
                  "caches; the longest prompt that it can read with these settings has {} tokens",
                  request.prompt.tokens.size(), needed >> 20, memory_.limit() >> 20,
                  longest_prompt_within(*model_, request, memory_.limit())));
}

PromptFit Scheduler::Loop::fit(Request request) const {
  complete_options(request);
  try {
    return fit_prompt(*model_, request, memory_.limit());
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    throw Refused(Refused::Kind::bad_request, e.what());
  }
}

/// Returns a matcher at the beginning of its grammar. Matchers of one grammar share their masks.
GrammarMatcher Scheduler::Loop::matcher_of(const Grammar& grammar) {
  const std::lock_guard lock(grammar_mutex_);
  if (!vocabulary_) {
    vocabulary_ = std::make_shared<const GrammarVocabulary>(model_->tokenizer());
  }
  const auto known = std::find_if(matchers_.begin(), matchers_.end(), [&](const auto& matcher) {
    return matcher.grammar().source() == grammar.source();
  });
  if (known != matchers_.end()) {
    matchers_.splice(matchers_.begin(), matchers_, known);
  } else {
    matchers_.emplace_front(grammar, vocabulary_);
  }
  drop_grammars();
  return matchers_.front();
}

/// Evicts the least recently used matchers until count and mask size are within bounds; keeps at
/// least one. Needs grammar_mutex_.
void Scheduler::Loop::drop_grammars() {
  size_t bytes = 0, n = 0;
  auto matcher = matchers_.begin();
  for (; matcher != matchers_.end(); ++matcher, ++n) {
    bytes += matcher->mask_bytes();
    if (n > 0 && (n == kMostMatchers || bytes > options_.grammar_memory)) break;
  }
  matchers_.erase(matcher, matchers_.end());
  n_grammars_ = static_cast<int>(n);
}

/// Called when a job with a grammar has ended. Does nothing while a client's thread makes a
/// grammar, since that thread does the same.
void Scheduler::Loop::drop_grammars_if_free() {
  const std::unique_lock lock(grammar_mutex_, std::try_to_lock);
  if (lock.owns_lock()) drop_grammars();
}

/// Throws Refused if the request would have to wait and the queue is full. Needs mutex_.
void Scheduler::Loop::take_place(const Request& request, size_t needed) {
  const bool begins = n_waiting_ == 0 && !is_reading_ &&
                      n_running_ + request.n <= options_.n_parallel && needed <= bytes_for_all_;
  if (begins) {
    n_beginning_ = 1;
  } else if (n_waiting_ - n_beginning_ >= options_.max_queue) {
    ++stats_.n_refused;
    throw Refused(Refused::Kind::queue_full,
                  fmt::format("{} requests are waiting or begin already, --max-queue is {}",
                              n_waiting_, options_.max_queue),
                  1);
  }
}

std::shared_ptr<Generation> Scheduler::Loop::submit(Request request,
                                                    const std::string& snapshot_path,
                                                    const std::string& notes) {
  complete_options(request);
  const size_t needed = check(request);
  auto job = std::make_unique<Job>();
  if (request.grammar) {
    try {
      job->matcher = matcher_of(*request.grammar);
    } catch (const Error& e) {  // the client's grammar can be read in too many ways
      throw Refused(Refused::Kind::bad_request, e.what());
    }
  }
  job->request = std::move(request);
  job->client = std::make_shared<Generation>();
  job->snapshot_path = snapshot_path;
  job->snapshot_notes = notes;
  const std::shared_ptr<Generation> client = job->client;
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || stopping_) {
      throw Refused(Refused::Kind::draining, "the server is stopping");
    }
    take_place(job->request, needed);
    job->id = next_id_++;
    ++n_waiting_;
    idle_ = false;
    submitted_.push_back(std::move(job));
  }
  changed_.notify_all();
  return client;
}

void Scheduler::Loop::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool Scheduler::Loop::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

bool Scheduler::Loop::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_;
}

SchedulerStats Scheduler::Loop::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Scheduler::Loop::add_task(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

// ---------------------------------------------------------------- the thread

void Scheduler::Loop::run_thread() {
  while (true) {
    const bool busy = round();
    publish();
    std::unique_lock lock(mutex_);
    if (!busy) {
      // requests that only wait for a timeout or for their client are checked now and then
      changed_.wait_for(lock, std::chrono::milliseconds(100),
                        [&] { return stopping_ || !submitted_.empty() || !tasks_.empty(); });
    }
    if (stopping_) break;
  }
  writer_.stop();
  run_tasks();  // tells clients about files that were written
  take_new_jobs();
  prefill_.reset();
  for (Jobs* jobs : {&waiting_, &reading_, &answering_, &writing_}) {
    for (const auto& job : *jobs) {
      job->client->push(Failure{Failure::Kind::cancelled, "the server is stopping"});
    }
    jobs->clear();
  }
  run_tasks();
}

bool Scheduler::Loop::round() {
  run_tasks();
  take_new_jobs();
  drop_lost_jobs();
  if (!prefill_) begin_reading();
  const Clock::time_point begin = Clock::now();
  const bool answered = !answering_.empty() && decode_step();
  const bool read = prefill_.has_value();
  if (read) {
    const double share = std::clamp(options_.prefill_share, 0.01, 0.99);
    read_for(answered ? seconds_since(begin) * share / (1 - share) : 0);
  }
  return answered || read;
}

void Scheduler::Loop::run_tasks() {
  std::deque<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

void Scheduler::Loop::take_new_jobs() {
  const std::lock_guard lock(mutex_);
  has_taken_ = !submitted_.empty();
  for (auto& job : submitted_) {
    ++counts_.n_requests;
    waiting_.push_back(std::move(job));
  }
  submitted_.clear();
}

/// Ends the jobs whose clients have gone or whose time is over.
void Scheduler::Loop::drop_lost_jobs() {
  const auto lost = [&](Job& job) {
    if (job.failed) return true;
    if (job.client->cancelled()) {
      ++counts_.n_cancelled;
      job.client->push(Failure{Failure::Kind::cancelled, "cancelled by the client"});
      return true;
    }
    if (!job.expired()) return false;
    const Failure failure = timed_out(job);
    fail_job(job, failure.kind, failure.message);
    return true;
  };
  bool had_grammar = false;
  for (Jobs* jobs : {&waiting_, &answering_}) {
    jobs->remove_if([&](const std::unique_ptr<Job>& job) {
      if (!lost(*job)) return false;
      had_grammar = had_grammar || job->matcher.has_value();
      release(*job);
      return true;
    });
  }
  if (had_grammar) drop_grammars_if_free();
  if (reading_.empty()) return;
  const bool all_lost = std::all_of(reading_.begin(), reading_.end(), [](const auto& job) {
    return job->client->cancelled() || job->expired();
  });
  if (!all_lost) return;  // lost ones are dropped when the prompts have been read
  prefill_.reset();
  for (const auto& job : reading_) {
    lost(*job);
    release(*job);
  }
  reading_.clear();
}

void Scheduler::Loop::publish() {
  counts_.n_waiting = static_cast<int>(waiting_.size());
  counts_.n_reading = static_cast<int>(reading_.size());
  counts_.n_answering = static_cast<int>(answering_.size());
  counts_.n_grammars = n_grammars_;
  counts_.n_writing = static_cast<int>(writing_.size());
  counts_.n_kept = static_cast<int>(kept_.all().size());
  counts_.n_prefixes = prefixes_.size();
  counts_.bytes_limit = memory_.limit();
  counts_.bytes_running = memory_.running() + memory_.reading();
  counts_.bytes_kept = memory_.kept();
  counts_.bytes_prefixes = memory_.prefixes();
  const std::lock_guard lock(mutex_);
  counts_.n_refused = stats_.n_refused;
  stats_ = counts_;
  n_waiting_ = static_cast<int>(waiting_.size() + submitted_.size());
  if (has_taken_) n_beginning_ = 0;
  n_running_ = 0;
  for (const Jobs* jobs : {&reading_, &answering_}) {
    for (const auto& job : *jobs) n_running_ += job->request.n;
  }
  is_reading_ = !reading_.empty();
  bytes_for_all_ = memory_.limit() -
                   std::min(memory_.limit(), memory_.running() + memory_.reading() + lent_bytes_);
  idle_ = waiting_.empty() && reading_.empty() && answering_.empty() && writing_.empty() &&
          submitted_.empty();
}

// ---------------------------------------------------------------- memory

bool Scheduler::Loop::make_room(size_t bytes) {
  while (memory_.free() < bytes) {
    if (const size_t freed = kept_.drop_one(); freed > 0) {
      memory_.kept() -= freed;
    } else if (prefixes_.drop_one()) {
      memory_.prefixes() = prefixes_.bytes();
    } else {
      return false;
    }
  }
  return true;
}

void Scheduler::Loop::release(Job& job) {
  memory_.running() -= job.running_bytes;
  memory_.reading() -= job.reading_bytes + job.prefix_bytes;
  job.running_bytes = job.reading_bytes = job.prefix_bytes = 0;
}

void Scheduler::Loop::fail_job(Job& job, Failure::Kind kind, const std::string& message) {
  ++counts_.n_failed;
  job.failed = true;
  job.client->push(Failure{kind, message});
}

}  // namespace snapkv::server
