// SPDX-License-Identifier: MIT
// Chat templates: how a model wants a conversation written. A template is a program in Jinja, the
// model's own (tokenizer.chat_template in its file) or one of those built in here; rendering it
// gives the prompt.
//
//   const auto chat = snapkv::read_model_chat("model.gguf");
//   const auto tmpl = snapkv::ChatTemplate::parse(chat.templates.at("default"), "model.gguf");
//   const snapkv::RenderedChat prompt = tmpl.render(
//       R"({"messages": [{"role": "user", "content": "Hello"}], "add_generation_prompt": true})");
//   session.prefill(model->tokenize(prompt));
//
// The language is that of transformers' apply_chat_template: Jinja 3.1 in its immutable sandbox,
// with trim_blocks and lstrip_blocks, its filter `tojson`, raise_exception(), strftime_now(), loop
// controls and the statement `generation`. Differences: what loads other templates (include,
// import, extends, block) is an error, as are filters for HTML pages (urlize, xmlattr, striptags,
// ...) and integers beyond 64 bits; results of map() and select() have a JSON; and a variable of
// the conversation can be read before the template sets one of the same name further down.
//
// Templates come with files that nobody has checked. Rendering is bounded: in its work, which may
// be a fixed amount and more for longer conversations, in nesting, and so in time and memory.
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

/// What a template made of a conversation.
struct RenderedChat {
  std::string text;
  /// Which bytes of `text` came from messages (but for their roles), tools and documents, sorted
  /// and disjoint. They are data: a control token spelled out in them must stay text, or a user
  /// could end their turn and begin one of the system. Model::tokenize() sees to it.
  std::vector<ByteRange> input;
};

class ChatTemplate {
 public:
  /// Reads a template, UTF-8. `name` is what error messages call it. Throws Error{kUsage} "NAME:
  /// line N: ..." for what is no template or not supported.
  static ChatTemplate parse(std::string_view source, std::string name);

  /// One of the formats that llama.cpp knows by name: "chatml", "llama3". Throws Error{kUsage} with
  /// the names there are.
  static ChatTemplate built_in(std::string_view name);
  static std::vector<std::string> built_in_names();

  /// `variables`: a JSON object, what the template's variables are. By OpenAI's and transformers'
  /// names: messages (objects with role and content), tools, documents, add_generation_prompt,
  /// bos_token, eos_token; any others that a template knows. `now`: what strftime_now() shows; not
  /// given: the time of the call. Throws Error{kUsage} "NAME: line N: ..." when the template does
  /// what it may not or refuses the conversation (raise_exception), or when `variables` is no JSON
  /// object; Error{kRuntime} when it exceeds its bounds.
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

/// What a model file says of chats.
struct ModelChat {
  /// Templates by name: tokenizer.chat_template is "default", tokenizer.chat_template.NAME is NAME
  /// ("tool_use", "rag"). Empty: the model has none.
  std::map<std::string, std::string> templates;
  /// The texts of the tokens that begin and end a text; empty where the file names none. What is
  /// not UTF-8 in them is U+FFFD.
  std::string bos_token;
  std::string eos_token;
};
/// Reads the header of a GGUF file (or split), or a Hugging Face folder. Throws kRuntime,
/// kBadModel.
ModelChat read_model_chat(const std::string& path);

}  // namespace snapkv
