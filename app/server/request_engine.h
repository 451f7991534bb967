// SPDX-License-Identifier: MIT
// RequestEngine: what computes the requests of all clients, as the formats of the API and HTTP see
// it, and the options and numbers that it has. Scheduler is the one that computes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/document_store.h"
#include "server/request.h"
#include "snapkv/engine.h"

namespace snapkv::server {

/// What a request reads when it continues something that has been read before.
enum class Reuse {
  off,      ///< its whole prompt
  append,   ///< what is new, over the conversation's compressed cache: takes the least memory,
            ///< but the answer sees only what earlier questions kept
  refresh,  ///< what is new, over the uncompressed rows of a prompt that began alike (KvPrefix);
            ///< the policy then selects from all of them, and the answer is as without reuse
};

struct SchedulerOptions {
  SessionOptions session;  ///< kv_type, chunk, n_ctx, spill_dir of all sessions
  Reuse reuse = Reuse::refresh;
  size_t kv_memory = 0;  ///< bytes for caches, prefixes and reading; 0: the free memory
  /// Limit on the part of kv_memory for prefixes, with Reuse::refresh; 0: none; empty: an eighth.
  std::optional<size_t> prefix_cache = {};
  /// Limit on the bytes of grammars' masks kept for later requests, in addition to kv_memory.
  size_t grammar_memory = size_t{64} << 20;
  int n_parallel = 64;         ///< answers being written at the same time
  int max_queue = 256;         ///< waiting requests; more are refused
  double prefill_share = 0.5;  ///< share of the time for reading prompts while answers are written
};

/// A request that was refused before it waited. `retry_after`: seconds; 0 if retrying is useless.
class Refused : public std::runtime_error {
 public:
  enum class Kind { queue_full, draining, never_fits, context_exceeded, bad_request };
  Refused(Kind why, const std::string& message, int seconds = 0)
      : std::runtime_error(message), kind(why), retry_after(seconds) {}
  Kind kind;
  int retry_after;
  /// Of Kind::context_exceeded: tokens of the prompt, and those that the context holds.
  int64_t n_prompt = 0, n_ctx = 0;
};

/// A session that is answering or kept, for /slots.
struct SlotInfo {
  int64_t id = 0;
  enum class State { waiting, reading, answering, writing, kept } state = State::kept;
  std::string request;  ///< id of its last request
  std::string policy;
  int64_t n_tokens = 0;  ///< tokens seen
  size_t bytes = 0;      ///< of its cache and history
  double idle_seconds = 0;
};

/// Counters since the start, and gauges, for /metrics.
struct SchedulerStats {
  int64_t n_requests = 0, n_refused = 0, n_cancelled = 0, n_failed = 0;
  int64_t n_prompt_tokens = 0;  ///< tokens read, without reused ones
  int64_t n_reused_tokens = 0;
  int64_t n_generated_tokens = 0;
  int64_t n_drafted_tokens = 0, n_accepted_tokens = 0;  ///< guessed; of them, right
  int64_t n_evicted_tokens = 0;  ///< rows that policies dropped, mean per layer and head
  int64_t n_decode_steps = 0;
  double prefill_seconds = 0, decode_seconds = 0, compress_seconds = 0;
  double longest_gap_seconds = 0;  ///< between two tokens of one answer, the longest so far
  int n_waiting = 0, n_reading = 0, n_answering = 0, n_kept = 0, n_prefixes = 0;
  int n_grammars = 0;  ///< grammars kept for later requests
  int n_writing = 0;   ///< snapshots that are being written to files
  size_t bytes_limit = 0, bytes_running = 0, bytes_kept = 0, bytes_prefixes = 0;
};

/// Whether a prompt can be read, and how long it may be.
struct PromptFit {
  int64_t n_tokens = 0;            ///< of the whole prompt, a document that it continues included
  int64_t most_tokens = 0;         ///< that a prompt of the same settings may have
  int64_t n_ctx = 0;               ///< of the session: prompt and answer
  bool limited_by_memory = false;  ///< most_tokens is less than the context would allow
};

/// Computes requests. All functions may be called by any thread.
class RequestEngine {
 public:
  virtual ~RequestEngine() = default;

  virtual const Model& model() const = 0;
  /// The options, with the sizes in force.
  virtual const SchedulerOptions& options() const = 0;

  /// Throws Refused at once if the request can never be served or may not wait.
  virtual std::shared_ptr<RequestUpdates> submit(Request request) = 0;

  /// Whether submit() would take a prompt of this length, and how long it may be. Throws
  /// Refused{bad_request} for options that can't work.
  virtual PromptFit fit(Request request) const = 0;

  /// Reads a text and writes its compressed cache to a file. Updates: PromptProgress, then
  /// PromptRead and one AnswerEnd, or Failure. `notes` go into the file. Throws as submit().
  virtual std::shared_ptr<RequestUpdates> make_snapshot(Request request, const std::string& path,
                                                        const std::string& notes) = 0;

  /// The documents of snapshots, each opened once; requests take theirs from here.
  virtual DocumentStore& documents() = 0;

  /// Refuses new requests; those that wait or run are finished.
  virtual void drain() = 0;
  virtual bool draining() const = 0;
  /// Whether no request waits or runs.
  virtual bool idle() const = 0;

  virtual std::vector<SlotInfo> slots() const = 0;
  /// Save, restore and erase kept sessions. Throw Error{kUsage} if there is none with this id or it
  /// is in use. Files are read and written in the calling thread, while others are served.
  virtual void save_slot(int64_t id, const std::string& path) = 0;
  virtual int64_t restore_slot(const std::string& path) = 0;  ///< returns its new id
  virtual void erase_slot(int64_t id) = 0;

  virtual SchedulerStats stats() const = 0;
};

}  // namespace snapkv::server
