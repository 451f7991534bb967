// SPDX-License-Identifier: MIT
// EngineThread: the thread on which the calls of a model and all that is made of it run.
#pragma once

#include <napi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace snapkv_node {

class EngineThread;

/// What an AbortSignal sets: ends the call that was given it.
struct Cancel {
  std::atomic<bool> requested = false;
  std::weak_ptr<EngineThread> engine;  // that of the call; JavaScript's thread only
};

/// What went wrong: a code of the C API, and its message.
struct Failure {
  int code = 0;
  std::string message;
};

/// A call on its way: the work of the engine's thread, then the promise that JavaScript awaits.
struct Job {
  /// Runs on the engine's thread, which owns whatever it writes until `result` is called. Throws
  /// Failure.
  std::function<void(Job&)> work = {};
  /// Makes the promise's value, on JavaScript's thread.
  std::function<Napi::Value(Napi::Env)> result = {};
  /// Whether it may run in between while a prompt is read: steps of answers and other short calls.
  bool is_brief = false;
  std::shared_ptr<Cancel> cancel = {};
  /// onProgress(phase, fraction), if given.
  std::shared_ptr<Napi::FunctionReference> progress = {};

  // filled in by EngineThread
  std::optional<Napi::Promise::Deferred> promise = {};
  std::optional<Failure> failure = {};
  std::shared_ptr<EngineThread> engine = {};
  std::chrono::steady_clock::time_point reported = {};
};

/// One thread for each model, since OpenMP keeps a team of threads for each thread that computes.
/// Jobs run in the order in which they come, but brief ones also while a prompt is read, so that
/// answers go on meanwhile. All functions but on_progress() are for JavaScript's thread.
class EngineThread : public std::enable_shared_from_this<EngineThread> {
 public:
  static std::shared_ptr<EngineThread> start(Napi::Env env);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// The process stays alive until the promise is settled.
  Napi::Promise submit(Napi::Env env, Job job);
  /// Settles jobs of this token that have not begun.
  void drop_cancelled(Napi::Env env);

  /// Ends the thread, for good; the job that runs ends within a chunk of its prompt. What is
  /// submitted later never begins.
  void stop();

  /// The C API's progress callback; `user` is the Job.
  static int on_progress(void* user, const char* phase, double fraction);

 private:
  using Message = std::function<void(Napi::Env)>;
  static void deliver(Napi::Env env, Napi::Function, std::nullptr_t*, Message* message);
  using Channel = Napi::TypedThreadSafeFunction<std::nullptr_t, Message, deliver>;

  explicit EngineThread(Napi::Env env);
  void run();
  void run_job(std::shared_ptr<Job> job);
  void run_brief_jobs();
  int report(Job& job, const char* phase, double fraction);
  void send(Message message);
  void settle(Napi::Env env, Job& job);
  static void end_of_environment(void* self);
  const napi_env env_;
  Channel channel_;
  size_t n_pending_ = 0;  // promises that are not settled; JavaScript's thread only
  bool stopped_ = false;  // JavaScript's thread only

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> queue_;  // with mutex_
  bool stopping_ = false;                   // with mutex_
  std::atomic<bool> ends_work_ = false;     // ends the job that runs
  std::thread thread_;
};

}  // namespace snapkv_node
