// SPDX-License-Identifier: MIT
// KeptSessions: conversations that may go on, with their compressed caches (Reuse::append). Used by
// the scheduler's loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/generation.h"
#include "snapkv/engine.h"

namespace snapkv::server {

struct KeptSession {
  int64_t id = 0;
  std::string request;  // id of its last request
  std::unique_ptr<Session> session;
  SessionOptions options;  // as the request had them
  /// All text so far, control tokens included; empty where the prompt was sent as tokens.
  std::string text;
  size_t prompt_bytes = 0;       // of the text, those of its last prompt; the rest is its answer
  std::vector<ByteRange> input;  // of that prompt, as RenderedChat has them
  std::vector<int32_t> tokens;   // of that text, as far as the session has read it
  std::vector<int32_t> unread;   // its last tokens
  size_t bytes = 0;
  std::chrono::steady_clock::time_point last_used = std::chrono::steady_clock::now();
};

/// What a request has to read in a kept session.
struct Continuation {
  KeptSession kept;
  std::vector<int32_t> tokens;
};

class KeptSessions {
 public:
  /// The conversation that the request goes on with, taken out of here; nothing if none is it: its
  /// options and all it has seen must be the request's. The longest, of several.
  std::optional<Continuation> take(const Model& model, const Request& request);
  void add(KeptSession kept);
  /// Frees the least recently used; its bytes, or 0 when there is none.
  size_t drop_one();
  /// The session of this id, taken out of here; nothing if there is none.
  std::optional<KeptSession> take(int64_t id);

  const std::list<KeptSession>& all() const { return sessions_; }

 private:
  std::list<KeptSession> sessions_;  // most recently used first
};

/// The bytes that a session holds beside its model.
size_t session_bytes(const Session& session);

}  // namespace snapkv::server
