// SPDX-License-Identifier: MIT
// PromptFormat: how a task's text becomes a prompt of the model: as it is, or as a user's message
// in the model's chat template. Used by tasks whose prompts end with a question or an instruction.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  /// Tokens of make()'s prompt.
  int64_t count_tokens(const Model& model, const PromptText& text) const;
  /// Of a chat: what is read after an answer, from the end of the assistant's message to the
  /// beginning of the next one, which is `lead`. `contents`: the messages of user and assistant in
  /// turn, a question last; the tokens do not depend on the answer before it. Throws as make(), and
  /// kUsage when the template does not show that answer.
  Turn make_turn(const Model& model, std::vector<std::string> contents,
                 const std::string& lead) const;

  /// For the keys of records: empty when plain, else another one for each template, set of
  /// variables and message of the system.
  std::string id() const;
  /// An item's id, with this format's unless it is plain.
  std::string with_id(const std::string& item) const;
  /// For the field `chat_template` of records: null when plain.
  Json record() const;

 private:
  struct Chat {
    ChatTemplate chat_template;
    Json variables;
    std::string system;
  };

  /// Messages of user and assistant in turn.
  RenderedChat render(const std::vector<std::string>& contents) const;
  RenderedChat render_prompt(const PromptText& text) const;  // with its lead

  std::optional<Chat> chat_;
};

}  // namespace snapkv::eval
