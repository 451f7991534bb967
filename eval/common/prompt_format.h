// SPDX-License-Identifier: MIT
// PromptFormat: how a task's text becomes a prompt of the model: as it is, or as a user's message
// in the model's chat template. Used by tasks whose prompts end with a question.
#pragma once

#include <optional>
#include <string>

#include "eval/common/runner.h"
#include "snapkv/chat.h"

namespace snapkv::eval {

struct PromptText {
  std::string context;
  std::string question;  ///< with the white space between the context and it
  std::string lead;      ///< how the answer begins; may be empty
};

class PromptFormat {
 public:
  /// Context, question and lead as one text.
  static PromptFormat plain();
  /// Context and question as a user's message, after a message of the system unless `system` is
  /// empty; the lead begins the answer. `variables`: what the template gets beside the messages, an
  /// object. Templates that show the date always get the same one.
  static PromptFormat chat(ChatTemplate chat_template, Json variables, std::string system);

  bool is_chat() const { return chat_.has_value(); }
  /// Text, tokens, and which of them are the question: a token that holds bytes of the question and
  /// of what is before or after it counts as the question's. Throws what rendering throws, and
  /// kUsage when the text is not UTF-8 or the template does not show the question.
  Prompt make(const Model& model, const PromptText& text) const;

  /// For the keys of records: empty when plain, else another one for each template, set of
  /// variables and message of the system.
  std::string id() const;
  /// For the field `chat_template` of records: null when plain.
  Json record() const;

 private:
  struct Chat {
    ChatTemplate chat_template;
    Json variables;
    std::string system;
  };

  RenderedChat render(const std::string& user) const;

  std::optional<Chat> chat_;
};

}  // namespace snapkv::eval
