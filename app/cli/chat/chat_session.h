// SPDX-License-Identifier: MIT
// ChatSession: a conversation with a model. It decides what the model's session must read for the
// next answer: only what is new where the session holds the conversation so far, all of it after a
// change of what was said before. Used by the chat command, through its display and commands.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/chat/conversation.h"
#include "cli/generate/generation.h"
#include "snapkv/chat.h"
#include "snapkv/engine.h"
#include "snapkv/prefill.h"

namespace snapkv::cli {

class ChatSession {
 public:
  struct Options {
    SessionOptions session;
    SamplerConfig sampler;
    GenerationLimits limits;
    Conversation::Json variables = Conversation::Json::object();  ///< of the template, by name
  };
  /// How an answer came about.
  struct Answer {
    Generation generation;
    bool is_complete_reading = false;  ///< the whole conversation was read, not only what is new
    int64_t n_read = 0;                ///< tokens that were read for it
    int64_t n_reused = 0;              ///< tokens of which the rows were there
    double read_seconds = 0;
    double answer_seconds = 0;
  };
  struct Callbacks {
    ProgressFn progress = {};
    /// The prompt's text has been read; the answer begins.
    std::function<void(const std::string& prompt)> on_begin = {};
    TokenFn on_token = {};
  };

  ChatSession(std::shared_ptr<const Model> model, ChatTemplate chat_template, Options options);

  const Conversation& conversation() const { return conversation_; }
  const Session& session() const { return session_; }
  const ChatTemplate& chat_template() const { return template_; }
  const Options& options() const { return options_; }
  /// Of the last answer; nothing before the first.
  const std::optional<Answer>& last_answer() const { return last_; }
  /// Of the rows that later answers may begin with, beside the cache.
  size_t row_bytes() const { return rows_ ? rows_->bytes() : 0; }

  /// Tokens of the whole conversation with this message of the user's at its end.
  int64_t n_tokens_with(const std::string& message) const;

  /// A user's message, valid UTF-8, and its answer. On an Error before the answer began (the
  /// conversation does not fit, the template refuses it, Ctrl-C) the conversation is what it was.
  const Answer& ask(const std::string& message, const Callbacks& callbacks);
  /// The same in place of the last message and its answer. Throws kUsage when there is none.
  const Answer& ask_instead(const std::string& message, const Callbacks& callbacks);
  /// Forgets the last message and its answer; false when there is none.
  bool undo();
  /// Forgets all messages, but for the system's.
  void reset();
  void set_system(const std::string& text);
  void set_conversation(Conversation conversation);
  /// Another cache for the same conversation. Throws as Session's constructor; nothing has changed
  /// then.
  void set_session_options(const SessionOptions& options);

 private:
  /// What the session has to read so that it holds the conversation and can answer.
  struct Reading {
    std::vector<int32_t> tokens;
    std::string text;
    bool is_complete = false;
  };
  Reading next_reading() const;
  Reading complete_reading() const;
  /// What is new since the last answer; nothing where the template does not show it.
  std::optional<Reading> new_part() const;
  RenderedChat render(const Conversation::Json& messages) const;
  /// The answer to a conversation that `change` changes first; undone if no answer begins.
  const Answer& answer_after(const std::function<void()>& change, const Callbacks& callbacks);
  void answer(const Callbacks& callbacks);
  int64_t reusable_rows(std::span<const int32_t> tokens) const;
  /// Whether there is memory for every row of so many tokens, beside the cache.
  bool keeps_rows(int64_t n_tokens) const;
  /// Reads a whole conversation, but for what it begins with as the last one that was read.
  void read_all(std::span<const int32_t> tokens, const Callbacks& callbacks, Answer& result);
  void read(const Callbacks& callbacks, Answer& result);
  void write(const Callbacks& callbacks, Answer& result);

  std::shared_ptr<const Model> model_;
  ChatTemplate template_;
  Options options_;
  Session session_;
  Sampler sampler_;
  Conversation conversation_;
  bool is_current_ = false;       // the session holds the conversation up to the last answer
  /// Every row of the last conversation that was read as a whole, for those that begin as it does;
  /// null where it would take too much memory.
  std::shared_ptr<const KvPrefix> rows_;
  std::vector<int32_t> pending_;  // the last tokens of that answer, which it has not read yet
  std::optional<Answer> last_;
};

}  // namespace snapkv::cli
