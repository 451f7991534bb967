// SPDX-License-Identifier: MIT
#include "server/scheduler/loop.h"

#include <algorithm>
#include <utility>

namespace snapkv::server {

Loop::Loop(const std::shared_ptr<const Model>& model, const SchedulerOptions& options,
           RequestQueue& queue, GrammarCache& grammars, DocumentStore& documents)
    : options_(options),
      queue_(queue),
      store_(options.kv_memory, *options.prefix_cache),
      admission_(model, options, store_, counts_),
      reader_(store_, counts_),
      writer_(model, options, store_, grammars, counts_),
      snapshots_(model, documents, store_, queue, counts_),
      thread_([this] { run(); }) {}

Loop::~Loop() {
  queue_.stop();
  thread_.join();
}

void Loop::run() {
  queue_.begin();
  bool busy = false;
  do {
    busy = round();
    publish();
  } while (queue_.wait(busy));
  end();
}

bool Loop::round() {
  queue_.run_tasks();
  take_new_jobs();
  admission_.drop_lost();
  writer_.drop_lost();
  reader_.drop_lost();
  if (!reader_.busy()) begin_reading();
  const Clock::time_point begin = Clock::now();
  const bool answered = !writer_.jobs().empty() && writer_.step(memory_comes_back());
  const bool read = reader_.busy();
  if (read) {
    const double share = std::clamp(options_.prefill_share, 0.01, 0.99);
    read_for(answered ? seconds_since(begin) * share / (1 - share) : 0);
  }
  return answered || read;
}

void Loop::take_new_jobs() {
  Jobs jobs = queue_.take();
  counts_.n_requests += std::ssize(jobs);
  admission_.add(std::move(jobs));
}

void Loop::begin_reading() {
  Admission::Group group = admission_.next(
      {.n_answers = n_answers(writer_.jobs()),
       .frees_memory = !writer_.jobs().empty() || !snapshots_.jobs().empty() || store_.has_lent()});
  for (const auto& job : group.ready) reader_.take_read(*job);
  writer_.begin(std::move(group.ready));
  if (!group.jobs.empty()) admission_.put_back(reader_.begin(std::move(group)));
}

void Loop::read_for(double seconds) {
  const Clock::time_point begin = Clock::now();
  Reader::Outcome outcome = reader_.read_for(seconds);
  admission_.put_back(std::move(outcome.again));
  for (auto job = outcome.read.begin(); job != outcome.read.end();) {
    const auto next = std::next(job);
    if (!(*job)->snapshot_path.empty()) {
      snapshots_.write(std::move(*job));
      outcome.read.erase(job);
    }
    job = next;
  }
  writer_.begin(std::move(outcome.read));
  counts_.prefill_seconds += seconds_since(begin);
}

/// Whether memory that can't be freed now becomes free once a prompt has been read or a file is
/// written.
bool Loop::memory_comes_back() const {
  return store_.has_lent() || !snapshots_.jobs().empty() || reader_.holds_prefix();
}

std::vector<SlotInfo> Loop::slots() const {
  std::vector<SlotInfo> all;
  list_jobs(writer_.jobs(), SlotInfo::State::answering, all);
  list_jobs(snapshots_.jobs(), SlotInfo::State::writing, all);
  list_jobs(reader_.jobs(), SlotInfo::State::reading, all);
  list_jobs(admission_.waiting(), SlotInfo::State::waiting, all);
  store_.list(all);
  return all;
}

void Loop::publish() {
  const auto count = [](const Jobs& jobs) { return static_cast<int>(jobs.size()); };
  counts_.n_waiting = count(admission_.waiting());
  counts_.n_reading = count(reader_.jobs());
  counts_.n_answering = count(writer_.jobs());
  counts_.n_writing = count(snapshots_.jobs());
  counts_.n_grammars = writer_.n_grammars();
  store_.count(counts_);
  queue_.publish(counts_, {.n_waiting = counts_.n_waiting,
                           .n_running = n_answers(reader_.jobs()) + n_answers(writer_.jobs()),
                           .is_reading = counts_.n_reading > 0,
                           .free_bytes = store_.free_for_requests(),
                           .idle = counts_.n_waiting + counts_.n_reading + counts_.n_answering +
                                       counts_.n_writing ==
                                   0});
}

/// Ends the requests that are left.
void Loop::end() {
  snapshots_.stop();
  queue_.run_tasks();  // tells clients about files that were written
  take_new_jobs();
  admission_.cancel_all();
  reader_.cancel_all();
  writer_.cancel_all();
  snapshots_.cancel_all();
  queue_.end();
}

}  // namespace snapkv::server
