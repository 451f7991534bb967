// SPDX-License-Identifier: MIT
#include "engine_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "errors.h"
#include "snapkv/snapkv.h"

namespace snapkv_node {
namespace {

constexpr std::chrono::milliseconds kReportEvery{50};

Failure never_begun() { return {SNAPKV_ERROR_CANCELLED, "the call was cancelled before it began"}; }

}  // namespace

std::shared_ptr<EngineThread> EngineThread::start(Napi::Env env) {
  const std::shared_ptr<EngineThread> engine(new EngineThread(env));
  auto& all = env.GetInstanceData<AddonData>()->engines;
  std::erase_if(all, [](const auto& ended) { return ended.expired(); });
  all.push_back(engine);
  return engine;
}

EngineThread::EngineThread(Napi::Env env)
    : env_(env),
      channel_(Channel::New(env, "snapkv engine", /*maxQueueSize=*/0, /*initialThreadCount=*/1)) {
  channel_.Unref(env);
  // after the channel's own hook, so that it runs before it: the thread must have ended when the
  // channel closes
  napi_add_env_cleanup_hook(env_, end_of_environment, this);
  thread_ = std::thread([this] { run(); });
}

EngineThread::~EngineThread() {
  if (stopped_) return;
  napi_remove_env_cleanup_hook(env_, end_of_environment, this);
  stop();
}

void EngineThread::end_of_environment(void* self) { static_cast<EngineThread*>(self)->stop(); }

void EngineThread::stop() {
  if (stopped_) return;
  stopped_ = true;
  const auto alive = weak_from_this().lock();  // jobs that are dropped below may be the last owners
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ends_work_ = true;
  }
  wake_.notify_one();
  thread_.join();
  queue_.clear();
  channel_.Release();
}

Napi::Promise EngineThread::submit(Napi::Env env, Job given) {
  const auto job = std::make_shared<Job>(std::move(given));
  job->engine = shared_from_this();
  job->promise = Napi::Promise::Deferred::New(env);
  if (job->cancel) job->cancel->engine = weak_from_this();
  if (n_pending_++ == 0) channel_.Ref(env);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(job);
  }
  wake_.notify_one();
  return job->promise->Promise();
}

void EngineThread::drop_cancelled(Napi::Env env) {
  std::vector<std::shared_ptr<Job>> dropped;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const std::shared_ptr<Job>& job) {
      if (!job->cancel || !job->cancel->requested) return false;
      dropped.push_back(job);
      return true;
    });
  }
  for (const auto& job : dropped) {
    job->failure = never_begun();
    settle(env, *job);
  }
}

// ---------------------------------------------------------------- the engine's thread

void EngineThread::run() {
  while (true) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    run_job(std::move(job));
  }
}

void EngineThread::run_job(std::shared_ptr<Job> job) {
  try {
    if (job->cancel && job->cancel->requested) {
      throw never_begun();
    }
    job->work(*job);
  } catch (const Failure& failure) {
    job->failure = failure;
  } catch (const std::exception& e) {
    job->failure = Failure{SNAPKV_ERROR_RUNTIME, e.what()};
  }
  // JavaScript's thread frees the job, which may hold references to its values
  send([this, job = std::move(job)](Napi::Env env) { settle(env, *job); });
}

void EngineThread::run_brief_jobs() {
  std::vector<std::shared_ptr<Job>> brief;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const std::shared_ptr<Job>& job) {
      if (!job->is_brief) return false;
      brief.push_back(job);
      return true;
    });
  }
  for (auto& job : brief) run_job(std::move(job));
}

int EngineThread::on_progress(void* user, const char* phase, double fraction) {
  Job& job = *static_cast<Job*>(user);
  return job.engine->report(job, phase, fraction);
}

int EngineThread::report(Job& job, const char* phase, double fraction) {
  if (ends_work_ || (job.cancel && job.cancel->requested)) return 1;
  run_brief_jobs();
  const auto now = std::chrono::steady_clock::now();
  if (job.progress && now - job.reported >= kReportEvery) {
    job.reported = now;
    send([function = job.progress, name = std::string(phase), fraction](Napi::Env env) {
      function->Call({Napi::String::New(env, name), Napi::Number::New(env, fraction)});
    });
  }
  return 0;
}

void EngineThread::send(Message message) {
  auto owned = std::make_unique<Message>(std::move(message));
  // only fails once the channel is closed, which waits for this thread
  if (channel_.NonBlockingCall(owned.get()) == napi_ok) owned.release();  // NOLINT: deliver() does
}

// ---------------------------------------------------------------- JavaScript's thread

void EngineThread::deliver(Napi::Env env, Napi::Function, std::nullptr_t*, Message* message) {
  const std::unique_ptr<Message> owned(message);
  if (env != nullptr) (*owned)(env);  // null while the environment ends
}

void EngineThread::settle(Napi::Env env, Job& job) {
  if (--n_pending_ == 0) channel_.Unref(env);
  if (job.failure) {
    job.promise->Reject(new_error(env, *job.failure).Value());
    return;
  }
  try {
    job.promise->Resolve(job.result ? job.result(env) : env.Undefined());
  } catch (const Napi::Error& e) {
    job.promise->Reject(e.Value());
  }
}

}  // namespace snapkv_node
