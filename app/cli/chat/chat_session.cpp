// SPDX-License-Identifier: MIT
#include "cli/chat/chat_session.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/chat_part.h"
#include "base/error.h"
#include "base/timer.h"
#include "chat/harmony_text.h"

namespace snapkv::cli {
namespace {

using Json = ChatMessages::Json;

/// Where less than this part of a conversation is new, its rows are not kept once more: copying a
/// token's rows takes less than a 500th of the time of computing it.
constexpr int64_t kLeastNewPart = 128;
/// The part of the free memory that rows for later answers may take.
constexpr size_t kRowShare = 8;

/// Returns a text that stands for an answer, so that what the template writes after it can be
/// found.
std::string placeholder_for(const Json& messages) {
  return unused_mark("snapkv-answer", messages.dump());
}

}  // namespace

ChatSession::ChatSession(std::shared_ptr<const Model> model, ChatTemplate chat_template,
                         Options options)
    : model_(std::move(model)),
      template_(std::move(chat_template)),
      options_(std::move(options)),
      session_(model_, options_.session),
      sampler_(options_.sampler) {
  if (options_.document) rows_ = options_.document->rows;
}

RenderedChat ChatSession::render(const Json& messages) const {
  if (options_.document) return chat::question_part(options_.document->file.form, messages);
  Json variables = options_.variables;
  variables["messages"] = messages;
  variables["add_generation_prompt"] = true;
  return template_.render(variables.dump());
}

ChatSession::Reading ChatSession::complete_reading(const ChatMessages& conversation) const {
  RenderedChat chat = render(conversation.messages());
  std::vector<int32_t> tokens = model_->tokenize(chat, /*add_bos=*/document() == nullptr);
  if (chooses_anew()) {
    const std::span<const int32_t> before = options_.document->rows->tokens();
    tokens.insert(tokens.begin(), before.begin(), before.end());
  }
  return {std::move(tokens), std::move(chat.text), true};
}

std::optional<ChatSession::Reading> ChatSession::new_part(const ChatMessages& conversation) const {
  const std::string placeholder = placeholder_for(conversation.messages());
  std::optional<RenderedChat> part =
      chat_after(render(conversation.messages_with_last_answer(placeholder)), placeholder);
  if (!part) return std::nullopt;
  Reading reading{pending_, {}, false};
  const std::vector<int32_t> tokens = model_->tokenize(*part, /*add_bos=*/false);
  reading.tokens.insert(reading.tokens.end(), tokens.begin(), tokens.end());
  reading.text = std::move(part->text);
  return reading;
}

/// Tokens of the conversation whose rows need not be computed.
int64_t ChatSession::reusable_rows(std::span<const int32_t> tokens) const {
  return rows_ ? usable_rows(*rows_, tokens, options_.session.kv) : 0;
}

bool ChatSession::keeps_rows(int64_t n_tokens) const {
  // a device's memory is for caches, and where it is limited none is left over
  if (model_->on_device() || options_.session.memory_limit > 0) return false;
  const size_t bytes = KvPrefix::bytes_for(model_->info(), options_.session, n_tokens);
  return bytes <= free_memory() / kRowShare;
}

ChatSession::Reading ChatSession::next_reading(const ChatMessages& conversation) const {
  if (is_current_ && !chooses_anew()) {
    if (std::optional<Reading> part = new_part(conversation)) return std::move(*part);
  }
  return complete_reading(conversation);
}

int64_t ChatSession::n_tokens_with(const std::string& message) const {
  ChatMessages conversation = conversation_;
  conversation.add("user", message);
  const Reading reading = next_reading(conversation);
  const bool follows_document = document() != nullptr && !chooses_anew();
  const int64_t before = !reading.is_complete ? session_.n_past()
                         : follows_document   ? document()->file.n_tokens
                                              : 0;
  return before + std::ssize(reading.tokens);
}

void ChatSession::read_all(std::span<const int32_t> tokens, const Callbacks& callbacks,
                           Reply& result) {
  if (document() != nullptr && !chooses_anew()) return read_after_document(tokens, callbacks);
  const bool is_first = store_ && !document_.empty() && conversation_.turns().size() == 1;
  if (!is_first) return read_after_rows(tokens, false, callbacks, result);
  if (load_document(tokens)) {
    try {
      read_after_rows(tokens, false, callbacks, result);
      return store_->note_use(result.n_reused);
    } catch (const Error& e) {
      if (!is_of_file(e)) throw;
      store_->drop(e);  // layers are checked when they are used
      rows_.reset();
      result.n_reused = 0;
      result.n_read = std::ssize(tokens);
    }
  }
  const bool stores = !rows_ && store_->wants_rows(std::ssize(tokens), options_.session);
  read_after_rows(tokens, stores, callbacks, result);
  if (stores && rows_) store_->save(*rows_);
}

void ChatSession::read_after_document(std::span<const int32_t> tokens, const Callbacks& callbacks) {
  is_current_ = false;
  session_.reset();
  session_.load(*options_.document->compressed);
  session_.prefill(tokens, {.progress = callbacks.progress, .compress = false});
}

bool ChatSession::load_document(std::span<const int32_t> tokens) {
  ChatMessages alone;
  alone.set_system(conversation_.system());
  alone.add("user", document_);
  store_->set_document(complete_reading(alone).tokens);
  if (rows_) return false;
  std::shared_ptr<const KvPrefix> stored = store_->load();
  if (!stored || usable_rows(*stored, tokens, options_.session.kv) == 0) return false;
  rows_ = std::move(stored);
  return true;
}

void ChatSession::read_after_rows(std::span<const int32_t> tokens, bool wants_rows,
                                  const Callbacks& callbacks, Reply& result) {
  is_current_ = false;
  session_.reset();
  PrefillPrompt prompt = {.sessions = {&session_}, .tokens = {tokens.begin(), tokens.end()}};
  prompt.options.progress = callbacks.progress;
  const int64_t n = reusable_rows(tokens);
  if (n > 0) {
    prompt.options.prefix = rows_;
    prompt.options.n_from_prefix = n;
    result.n_read -= n;
    result.n_reused = n;
  }
  // where little is new, the next answer finds nearly as much in the rows that are there
  const bool is_new = result.n_read > std::ssize(tokens) / kLeastNewPart;
  prompt.makes_prefix = wants_rows || (is_new && keeps_rows(std::ssize(tokens)));
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  if (std::shared_ptr<const KvPrefix> rows = prefill.take_prefix()) rows_ = std::move(rows);
}

void ChatSession::read(const Callbacks& callbacks, Reply& result) {
  const Reading reading = next_reading(conversation_);
  if (reading.tokens.empty()) {
    fail(ErrorCode::kUsage, "the chat template '{}' makes an empty prompt of the conversation",
         template_.name());
  }
  header_ = chat::harmony_header(reading.text);
  result.n_read = std::ssize(reading.tokens);
  result.is_complete_reading = reading.is_complete;
  const Timer timer;
  if (reading.is_complete) {
    read_all(reading.tokens, callbacks, result);
  } else {
    session_.prefill(reading.tokens,
                     {.progress = callbacks.progress, .compress = document() == nullptr});
  }
  sampler_.accept(reading.tokens);
  is_current_ = false;  // until the answer is complete
  pending_.clear();
  if (reading.is_complete) seen_.clear();
  seen_.insert(seen_.end(), reading.tokens.begin(), reading.tokens.end());
  result.read_seconds = timer.seconds();
  if (callbacks.on_begin) callbacks.on_begin(reading.text);
}

/// Where the answer comes from: the documents before the messages' own paragraphs.
std::vector<CitedPassage> ChatSession::sources() {
  std::string text;  // of the stored document
  std::vector<CitableText> texts;
  if (chooses_anew()) {
    const chat::DocumentFile& file = document()->file;
    text = chat::document_text(*model_, file.form, document()->rows->tokens());
    texts.push_back({text, file.pages});
  }
  for (const Json& turn : conversation_.turns()) {
    if (turn.at("role") != "user") continue;
    const auto& message = turn.at("content").get_ref<const std::string&>();
    texts.push_back({text_before_question(message), pages_of(message)});
  }
  return cited_passages(session_, seen_, texts);
}

const long_documents::PageMarks& ChatSession::pages_of(std::string_view message) const {
  static const long_documents::PageMarks none;
  for (const auto& [documents, pages] : pages_) {
    if (message.starts_with(documents)) return pages;
  }
  return none;
}

void ChatSession::write(const Callbacks& callbacks, Reply& result) {
  const Timer timer;
  const int64_t n_before = session_.n_past();
  const auto finish = [&] {
    result.answer_seconds = timer.seconds();
    const Generation& generation = result.generation;
    if (generation.ids.empty() && generation.stop_reason != StopReason::eos) return;
    conversation_.add("assistant", header_.empty()
                                       ? generation.text
                                       : chat::harmony_answer(header_, generation.text));
    // the last token may have been sampled but not yet read
    const int64_t n_unread = n_before + std::ssize(generation.ids) - session_.n_past();
    pending_.assign(generation.ids.end() - n_unread, generation.ids.end());
    is_current_ = true;
    if (options_.cites) result.sources = sources();
    seen_.insert(seen_.end(), generation.ids.begin(), generation.ids.end() - n_unread);
  };
  if (options_.cites) session_.trace_answer();
  try {
    generate(session_, sampler_, options_.limits, callbacks.on_token, result.generation);
  } catch (const Error&) {
    finish();
    throw;
  }
  finish();
}

void ChatSession::answer(const Callbacks& callbacks) {
  Reply result;
  read(callbacks, result);
  write(callbacks, result);
  last_ = std::move(result);
}

const ChatSession::Reply& ChatSession::ask(const std::string& message, const Callbacks& callbacks,
                                           const MessageDocuments& documents) {
  if (conversation_.empty()) document_ = message.substr(0, documents.n_bytes);
  if (!documents.pages.empty()) {
    pages_.insert_or_assign(message.substr(0, documents.n_bytes), documents.pages);
  }
  return answer_after([&] { conversation_.add("user", message); }, callbacks);
}

const ChatSession::Reply& ChatSession::ask_instead(const std::string& message,
                                                   const Callbacks& callbacks) {
  if (!conversation_.last_user()) fail(ErrorCode::kUsage, "there is no message yet");
  const auto replace = [&] {
    conversation_.take_last_user();
    conversation_.add("user", message);
    is_current_ = false;
  };
  return answer_after(replace, callbacks);
}

const ChatSession::Reply& ChatSession::answer_after(const std::function<void()>& change,
                                                    const Callbacks& callbacks) {
  const ChatMessages before = conversation_;
  change();
  const size_t n_messages = conversation_.turns().size();
  const auto restore_unanswered = [&] {
    if (conversation_.turns().size() == n_messages) conversation_ = before;
  };
  try {
    answer(callbacks);
  } catch (const Error&) {
    restore_unanswered();
    throw;
  }
  restore_unanswered();
  return *last_;
}

bool ChatSession::undo() {
  if (!conversation_.take_last_user()) return false;
  is_current_ = false;
  return true;
}

void ChatSession::reset() {
  conversation_.clear();
  pages_.clear();
  is_current_ = false;
  rows_ = options_.document ? options_.document->rows : nullptr;
  session_.reset();
}

void ChatSession::set_system(const std::string& text) {
  conversation_.set_system(text);
  is_current_ = false;
}

void ChatSession::set_conversation(ChatMessages conversation) {
  conversation_ = std::move(conversation);
  is_current_ = false;
}

void ChatSession::set_session_options(const SessionOptions& options) {
  session_ = Session(model_, options);
  options_.session = options;
  is_current_ = false;
}

}  // namespace snapkv::cli
