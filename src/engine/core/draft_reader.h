// SPDX-License-Identifier: MIT
// DraftReader: a session of a smaller model, which reads along with a session of the model itself
// and guesses how its text goes on (Draft::model).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv {

/// Throws kUsage, naming a token, unless nearly all tokens of `draft` are those of `model`.
void check_draft_vocabulary(const Model& model, const Model& draft);

/// The options of the session that reads along with a session of these `options`.
SessionOptions draft_reader_options(const ModelInfo& draft, const SessionOptions& options);
/// The most tokens that it reads before it begins again with the last ones.
int64_t draft_reader_tokens(const ModelInfo& draft, const SessionOptions& options);

class DraftReader {
 public:
  DraftReader(const std::shared_ptr<const Model>& model, const SessionOptions& options);

  /// Reads what has come since the last call of a text, which is `text` and then `last`. Of a text
  /// that is longer than its context it reads the first tokens and the last ones. A call reads so
  /// little that other answers need not wait long, so that it may take several: true if no more is
  /// left than a step can read, which unread() has then.
  bool catch_up(std::span<const int32_t> text, StepTokens last);
  /// Not empty after catch_up(), unless that has read a prompt.
  StepTokens unread() const { return unread_; }
  /// After a step has read unread().
  void advance();
  const Session& session() const { return session_; }
  Session::Impl& state() const { return session_.state(); }

 private:
  /// Token i of those to be read of the text.
  int32_t token(std::span<const int32_t> text, StepTokens last, int64_t i) const;
  void begin_again(int64_t n_text);

  Session session_;
  const int64_t most_tokens_;
  const int32_t n_vocab_;
  // what is read of a text: its first n_first_ tokens, and those from from_ on
  int64_t n_first_ = 0, from_ = 0;
  std::vector<int32_t> read_;    // by session_
  std::vector<int32_t> unread_;  // of the next step
};

}  // namespace snapkv
