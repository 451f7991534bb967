// SPDX-License-Identifier: MIT
// PromptFormat: how a task's text becomes a prompt: as it is, or as a user's message in the model's
// chat template. For tasks whose prompts end with a question or an instruction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/common/runner.h"
#include "snapkv/chat.h"

namespace snapkv::eval {

struct PromptText {
  std::string context;
  std::string question;  ///< including the white space after the context
  std::string lead;      ///< the beginning of the answer; may be empty
};

class PromptFormat {
 public:
  /// Context, question and lead as one text.
  static PromptFormat plain();
  /// Context and question as a user's message, after a system message unless `system` is empty; the
  /// lead begins the answer. `variables`: an object with what the template gets besides the
  /// messages. Templates that show the date always get the same one.
  static PromptFormat chat(ChatTemplate chat_template, Json variables, std::string system);

  bool is_chat() const { return chat_.has_value(); }
  /// The prompt's text and tokens, and which of them are the question; a token with bytes of the
  /// question and of the text around it belongs to the question. Throws what rendering throws, and
  /// kUsage if the text is not UTF-8 or the template does not show the question.
  Prompt make(const Model& model, const PromptText& text) const;
  /// The number of tokens of make()'s prompt.
  int64_t count_tokens(const Model& model, const PromptText& text) const;
  /// For a chat: the text to read after an answer, from the end of the assistant's message to the
  /// beginning of the next one, which is `lead`. `contents`: the messages of user and assistant in
  /// turn, ending with a question; the tokens do not depend on the previous answer. Throws as
  /// make() does, and kUsage if the template does not show that answer.
  Turn make_turn(const Model& model, std::vector<std::string> contents,
                 const std::string& lead) const;

  /// A part for the keys of records: empty if plain, else different for each template, set of
  /// variables and system message.
  std::string id() const;
  /// An item's id, followed by this format's id unless it is plain.
  std::string with_id(const std::string& item) const;
  /// The value of the field `chat_template` in records: null if plain.
  Json record() const;

 private:
  struct Chat {
    ChatTemplate chat_template;
    Json variables;
    std::string system;
  };

  /// Renders messages of user and assistant in turn.
  RenderedChat render(const std::vector<std::string>& contents) const;
  RenderedChat render_prompt(const PromptText& text) const;  // including the lead

  std::optional<Chat> chat_;
};

}  // namespace snapkv::eval
