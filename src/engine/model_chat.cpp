// SPDX-License-Identifier: MIT
// What a model's file or folder says about chats: read_model_chat() and Model::chat().
#include "base/utf8.h"
#include "engine/core/model_impl.h"
#include "engine/files/open_model.h"
#include "snapkv/chat.h"
#include "text/builtin_templates.h"

namespace snapkv {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

std::string token_text(const GgufFile& file, std::string_view key) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  if (!file.has(key) || !file.has(kTokens)) return "";
  const uint64_t id = file.get_uint(key);
  const std::vector<std::string>& tokens = file.get_strings(kTokens);
  if (id >= tokens.size()) return "";  // converters write -1 for "none"
  return utf8::with_replacements(tokens[id]);
}

/// A template, or that of the name which some files have in its place: RWKV's "rwkv-world".
std::string template_of(const std::string& text) {
  return std::string(find_builtin_template(text).value_or(text));
}

}  // namespace

ModelChat chat_of(const GgufFile& file) {
  ModelChat chat;
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(kTemplateKey)) continue;
    const std::string_view rest = std::string_view(key).substr(kTemplateKey.size());
    if (rest.empty()) {
      chat.templates["default"] = template_of(file.get_string(key));
    } else if (rest[0] == '.') {
      chat.templates[std::string(rest.substr(1))] = template_of(file.get_string(key));
    }
  }
  chat.bos_token = token_text(file, "tokenizer.ggml.bos_token_id");
  chat.eos_token = token_text(file, "tokenizer.ggml.eos_token_id");
  return chat;
}

ModelChat read_model_chat(const std::string& path) {
  return chat_of(open_model(path, {.copies_values = false}));
}

}  // namespace snapkv
