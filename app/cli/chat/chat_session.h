// SPDX-License-Identifier: MIT
// ChatSession: a conversation with a model. It decides what the model's session must read for the
// next answer: only the new part when the session holds the conversation so far, all of it after an
// earlier message has changed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/document.h"
#include "cli/chat/chat_messages.h"
#include "cli/document/document_rows.h"
#include "cli/generate/cite.h"
#include "cli/generate/generation.h"
#include "snapkv/chat.h"
#include "snapkv/engine.h"
#include "snapkv/prefill.h"

namespace snapkv::cli {

/// The documents that a message begins with.
struct MessageDocuments {
  size_t n_bytes = 0;
  long_documents::PageMarks pages = {};
};

class ChatSession {
 public:
  struct Options {
    SessionOptions session;
    SamplerConfig sampler;
    GeneratorOptions limits;
    bool cites = false;  ///< answers name their sources in the documents of messages
    ChatMessages::Json variables = ChatMessages::Json::object();  ///< of the template, by name
    /// What the conversation is about; null: nothing. The template, its variables and the system
    /// message are the document's own. Of one with every row, each message chooses from all.
    std::shared_ptr<const chat::Document> document = {};
  };
  /// An answer, and how it was produced.
  struct Reply {
    Generation generation;
    bool is_complete_reading = false;  ///< the whole conversation was read, not only the new part
    int64_t n_read = 0;                ///< tokens that were read for the answer
    int64_t n_reused = 0;              ///< tokens whose rows were there already
    double read_seconds = 0;
    double answer_seconds = 0;
    std::vector<CitedPassage> sources = {};  ///< with Options::cites
  };
  struct Callbacks {
    ProgressFn progress = {};
    /// Called when the prompt has been read and the answer begins.
    std::function<void(const std::string& prompt)> on_begin = {};
    TokenFn on_token = {};
  };

  ChatSession(std::shared_ptr<const Model> model, ChatTemplate chat_template, Options options);

  /// The documents that the first message begins with come from this store, and go there.
  void set_store(std::unique_ptr<DocumentRows> store) { store_ = std::move(store); }

  const ChatMessages& conversation() const { return conversation_; }
  const Session& session() const { return session_; }
  const ChatTemplate& chat_template() const { return template_; }
  const Options& options() const { return options_; }
  /// The last answer; empty before the first.
  const std::optional<Reply>& last_answer() const { return last_; }
  /// Of the rows that later answers may begin with, beside the cache.
  size_t row_bytes() const { return rows_ ? rows_->bytes() : 0; }

  /// Adds a user's message (valid UTF-8) and answers it. If an Error occurs before the answer
  /// begins (the conversation does not fit, the template refuses it, Ctrl-C), the conversation is
  /// unchanged.
  const Reply& ask(const std::string& message, const Callbacks& callbacks,
                   const MessageDocuments& documents = {});
  /// Replaces the last message and its answer. Throws kUsage when there is none.
  const Reply& ask_instead(const std::string& message, const Callbacks& callbacks);
  /// Tokens that the session will have seen when it has read this further message; more than
  /// n_ctx() - 1 leave no room for an answer. Throws as rendering does.
  int64_t n_tokens_with(const std::string& message) const;
  /// The document that the conversation is about, or null.
  const chat::Document* document() const { return options_.document.get(); }
  /// Whether rows are chosen anew, from all of the document's and the conversation's, for every
  /// message.
  bool chooses_anew() const { return options_.document && options_.document->rows; }
  /// Forgets the last message and its answer; false when there is none.
  bool undo();
  /// Removes all messages except the system message.
  void reset();
  void set_system(const std::string& text);
  void set_conversation(ChatMessages conversation);
  /// Gives the same conversation a new cache. Throws as Session's constructor; then nothing has
  /// changed.
  void set_session_options(const SessionOptions& options);

 private:
  /// Tokens the session must read to hold the conversation and be able to answer.
  struct Reading {
    std::vector<int32_t> tokens;
    std::string text;
    bool is_complete = false;
  };
  Reading next_reading(const ChatMessages& conversation) const;
  Reading complete_reading(const ChatMessages& conversation) const;
  /// What is new since the last answer; nothing where the template does not show it.
  std::optional<Reading> new_part(const ChatMessages& conversation) const;
  RenderedChat render(const ChatMessages::Json& messages) const;
  /// Applies `change` to the conversation and answers it; undoes the change if no answer begins.
  const Reply& answer_after(const std::function<void()>& change, const Callbacks& callbacks);
  void answer(const Callbacks& callbacks);
  int64_t reusable_rows(std::span<const int32_t> tokens) const;
  /// Whether there is memory for every row of so many tokens, beside the cache.
  bool keeps_rows(int64_t n_tokens) const;
  /// Reads a whole conversation, but for what it begins with as the last one that was read.
  void read_all(std::span<const int32_t> tokens, const Callbacks& callbacks, Reply& result);
  /// The same with the rows that there are now.
  void read_after_rows(std::span<const int32_t> tokens, bool wants_rows, const Callbacks& callbacks,
                       Reply& result);
  /// Reads what follows a document whose rows were chosen when it was stored.
  void read_after_document(std::span<const int32_t> tokens, const Callbacks& callbacks);
  /// Takes the rows of the first message's documents from the store; true if they are there.
  bool load_document(std::span<const int32_t> tokens);
  void read(const Callbacks& callbacks, Reply& result);
  void write(const Callbacks& callbacks, Reply& result);
  std::vector<CitedPassage> sources();
  /// Of the documents that a message begins with, where there were such.
  const long_documents::PageMarks& pages_of(std::string_view message) const;

  std::shared_ptr<const Model> model_;
  ChatTemplate template_;
  Options options_;
  Session session_;
  Sampler sampler_;
  ChatMessages conversation_;
  std::unique_ptr<DocumentRows> store_;  // null: none
  std::string document_;                 // what the first message begins with
  std::map<std::string, long_documents::PageMarks, std::less<>> pages_;  // by their documents
  bool is_current_ = false;  // the session holds the conversation up to the last answer
  /// Every row of the last conversation that was read as a whole, for those that begin like it;
  /// null if it would take too much memory.
  std::shared_ptr<const KvPrefix> rows_;
  std::string header_;            // of an answer with channels, whose reasoning is not a message
  std::vector<int32_t> seen_;     // the tokens that the session has read
  std::vector<int32_t> pending_;  // last tokens of that answer, not yet read by the session
  std::optional<Reply> last_;
};

}  // namespace snapkv::cli
