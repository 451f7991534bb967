// SPDX-License-Identifier: MIT
// KeptSessions: conversations that may continue, with their compressed caches (Reuse::append).
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/request.h"
#include "snapkv/engine.h"

namespace snapkv::server {

struct KeptSession {
  int64_t id = 0;
  std::string request;  // id of the last request
  std::unique_ptr<Session> session;
  SessionOptions options;  // as in the request
  /// All text so far, including control tokens; empty if the prompt was sent as tokens.
  std::string text;
  size_t prompt_bytes = 0;       // length of the last prompt in the text; its answer follows
  std::vector<ByteRange> input;  // of that prompt, as in RenderedChat
  std::vector<int32_t> tokens;   // of the text, as far as the session has read it
  std::vector<int32_t> unread;   // the text's last tokens, which it has not read
  size_t bytes = 0;
  std::chrono::steady_clock::time_point last_used = std::chrono::steady_clock::now();
};

/// The tokens that a request must read in a kept session.
struct Continuation {
  KeptSession kept;
  std::vector<int32_t> tokens;
};

class KeptSessions {
 public:
  /// Removes and returns the conversation that the request continues: its options must be the
  /// request's, and the request must begin with all it has seen. The longest if there are several;
  /// nothing if there is none.
  std::optional<Continuation> take(const Model& model, const Request& request);
  void add(KeptSession kept);
  /// Frees the least recently used session and returns its bytes; 0 if there is none.
  size_t drop_one();
  /// Removes and returns the session with this id; nothing if there is none.
  std::optional<KeptSession> take(int64_t id);

  const std::list<KeptSession>& all() const { return sessions_; }

 private:
  std::list<KeptSession> sessions_;  // most recently used first
};

/// Bytes that a session takes, without its model.
size_t session_bytes(const Session& session);

}  // namespace snapkv::server
