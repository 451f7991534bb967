// SPDX-License-Identifier: MIT
// LongReading: a conversation whose document is longer than the context (the field `long`). What is
// read of it stands in the prompt instead of it; for `parts`, requests of its own read and answer
// the parts first.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chat/conversation.h"
#include "long_documents/condensed.h"
#include "long_documents/plan.h"
#include "server/api/context.h"
#include "server/request.h"

namespace snapkv::server {

class LongReading {
 public:
  /// Nothing if the prompt of `request`, which the conversation makes, fits, or if there is no
  /// document with a question in it: the longest text of the user's messages, of the last one
  /// without its last paragraph, which is the question. Throws as plan_reading().
  static std::shared_ptr<LongReading> begin(const chat::Conversation& conversation,
                                            const ApiContext& context, const Request& request);

  /// The request for the next part, which is to be computed; nothing when all have been.
  std::optional<Request> next(const Request& request);
  /// Takes an update of that request. Returns the progress of all parts if it says how far the part
  /// is.
  std::optional<PromptProgress> take(const Update& update);
  /// Makes `request` the one that answers, once all parts have been read. Its `citable` texts
  /// become the passages of these that it is shown.
  void finish(Request& request) const;
  /// What was read, for the answer's `kv.long`.
  Json report() const;

 private:
  LongReading(chat::Conversation conversation, const ApiContext& context);

  /// The prompt of a conversation with a user's text in place of the message with the document.
  Prompt prompt_with(const std::string& text) const;
  Prompt part_prompt(size_t part) const;
  std::string part_text(size_t part) const;
  long_documents::LongDocument document() const { return {document_, pages_}; }
  int64_t count(std::string_view text) const;
  bool find_document();
  void plan(const Request& request, int64_t most_tokens);
  long_documents::Condensed condensed() const;
  /// By how many tokens the prompt is too long with this in the document's place.
  int64_t excess_of(const long_documents::Condensed& condensed) const;

  const chat::Conversation conversation_;
  const ApiContext& context_;
  size_t message_ = 0;    // the one with the document
  std::string document_;  // its text
  std::string rest_;      // what follows it in that message
  std::string question_;
  long_documents::PageMarks pages_;
  long_documents::Room room_;
  int64_t most_prompt_ = 0;  // tokens of a prompt that leave room for the answer
  long_documents::LongPlan plan_;
  std::vector<long_documents::PartAnswer> answers_;
  size_t n_asked_ = 0;  // parts whose requests were made
  std::string answer_;  // of the part that is being read
  double seconds_ = 0;  // of the parts before it
};

}  // namespace snapkv::server
