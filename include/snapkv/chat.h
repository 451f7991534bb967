// SPDX-License-Identifier: MIT
// Chat templates: the form in which a model expects a conversation. A template is a program in
// Jinja, either the model's own (tokenizer.chat_template in its file) or one of those built in
// here; rendering it gives the prompt.
//
//   const auto chat = snapkv::read_model_chat("model.gguf");
//   const auto tmpl = snapkv::ChatTemplate::parse(chat.templates.at("default"), "model.gguf");
//   const snapkv::RenderedChat prompt = tmpl.render(
//       R"({"messages": [{"role": "user", "content": "Hello"}], "add_generation_prompt": true})");
//   session.prefill(model->tokenize(prompt));
//
// The language is that of transformers' apply_chat_template: Jinja 3.1 in its immutable sandbox,
// with trim_blocks and lstrip_blocks, its filter `tojson`, raise_exception(), strftime_now(), loop
// controls and the statement `generation`. Differences: statements that load other templates
// (include, import, extends, block) are errors, as are filters for HTML pages (urlize, xmlattr,
// striptags, ...) and integers beyond 64 bits; results of map() and select() can be written as
// JSON; and a variable of the conversation can be read before the template sets one of the same
// name further down.
//
// Templates come with files that no one has checked. So rendering is bounded in its work (a fixed
// amount plus more for longer conversations) and its nesting, and thereby in time and memory.
#pragma once

#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/error.h"

namespace snapkv {

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// A conversation as a template rendered it.
struct RenderedChat {
  std::string text;
  /// The bytes of `text` that came from messages (except their roles), tools and documents, sorted
  /// and disjoint. They are data: a control token spelled out in them must stay text, or a user
  /// could end their turn and begin one of the system. Model::tokenize() ensures that.
  std::vector<ByteRange> input;
};

class ChatTemplate {
 public:
  /// Reads a template in UTF-8. `name` is its name in error messages. Throws Error{kUsage} "NAME:
  /// line N: ..." if it is not a template or uses something that is not supported.
  static ChatTemplate parse(std::string_view source, std::string name);

  /// One of the formats that llama.cpp knows by name: "chatml", "llama3". Throws Error{kUsage} with
  /// the available names.
  static ChatTemplate built_in(std::string_view name);
  static std::vector<std::string> built_in_names();

  /// `variables`: a JSON object with the template's variables, under OpenAI's and transformers'
  /// names: messages (objects with role and content), tools, documents, add_generation_prompt,
  /// bos_token, eos_token; any others that a template uses. `now`: the time that strftime_now()
  /// shows; by default that of the call. Throws Error{kUsage} "NAME: line N: ..." if the template
  /// does something that is not allowed or rejects the conversation (raise_exception), or if
  /// `variables` is not a JSON object; Error{kRuntime} if it exceeds its bounds.
  RenderedChat render(std::string_view variables, std::optional<std::time_t> now = {}) const;

  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }

 private:
  struct Tree;
  ChatTemplate(std::string source, std::string name, std::shared_ptr<const Tree> tree);

  std::string source_;
  std::string name_;
  std::shared_ptr<const Tree> tree_;
};

/// What a model's file says about chats.
struct ModelChat {
  /// Templates by name: tokenizer.chat_template is "default", tokenizer.chat_template.NAME is NAME
  /// ("tool_use", "rag"). Empty if the model has none.
  std::map<std::string, std::string> templates;
  /// The texts of the tokens that begin and end a text; empty if the file names none. Bytes that
  /// are not UTF-8 are replaced by U+FFFD.
  std::string bos_token;
  std::string eos_token;
};
/// Reads the header of a GGUF file (or split), or a Hugging Face folder. Throws kRuntime,
/// kBadModel.
ModelChat read_model_chat(const std::string& path);

}  // namespace snapkv
