// SPDX-License-Identifier: MIT
#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

namespace snapkv::server {
namespace {

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
  options.session.chunk = resolve_options(options.session, model.info()).chunk;
  return options;
}

}  // namespace

Scheduler::Scheduler(std::shared_ptr<const Model> model, const SchedulerOptions& options)
    : model_(std::move(model)),
      options_(with_sizes(options, *model_)),
      rules_(model_, options_),
      documents_(model_),
      grammars_(model_, options_.grammar_memory),
      queue_({.n_parallel = options_.n_parallel, .max_queue = options_.max_queue},
             options_.kv_memory),
      loop_(model_, options_, queue_, grammars_, documents_),
      slot_files_(model_, rules_, queue_, loop_.store()) {}

std::shared_ptr<RequestUpdates> Scheduler::submit(Request request) {
  auto job = std::make_unique<Job>();
  job->request = std::move(request);
  return add(std::move(job));
}

std::shared_ptr<RequestUpdates> Scheduler::make_snapshot(Request request, const std::string& path,
                                                         const std::string& notes) {
  auto job = std::make_unique<Job>();
  job->request = std::move(request);
  job->snapshot_path = path;
  job->snapshot_notes = notes;
  return add(std::move(job));
}

std::shared_ptr<RequestUpdates> Scheduler::add(std::unique_ptr<Job> job) {
  rules_.complete(job->request);
  job->plan = rules_.plan(job->request);
  add_matcher(*job);
  job->client = std::make_shared<RequestUpdates>();
  const std::shared_ptr<RequestUpdates> client = job->client;
  const size_t needed = job->plan.needed_bytes();
  queue_.add(std::move(job), needed);
  return client;
}

void Scheduler::add_matcher(Job& job) {
  const bool is_asked_for = job.request.grammar != nullptr;
  const auto& grammar = is_asked_for ? job.request.grammar : job.request.call_grammar;
  if (grammar == nullptr) return;
  try {
    job.matcher = grammars_.matcher_of(*grammar, job.request.shows_control_tokens);
  } catch (const Error& e) {  // it can be read in too many ways
    if (is_asked_for) throw Refused(Refused::Kind::bad_request, e.what());
  }
}

std::vector<SlotInfo> Scheduler::slots() const {
  return queue_.run([this] { return loop_.slots(); });
}

}  // namespace snapkv::server
