// SPDX-License-Identifier: MIT
#include "server/api/completion_prompts.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/api/api_error.h"
#include "snapkv/fill_in.h"
#include "snapkv/text_stream.h"

namespace snapkv::server {
namespace {

std::vector<int32_t> token_ids(const Fields& body, const Json& list, const Model& model) {
  std::vector<int32_t> ids;
  const int64_t n_vocab = model.tokenizer().n_vocab();
  for (const Json& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= n_vocab) {
      body.refuse("prompt", fmt::format("{} is not a token id; they are 0 to {}", short_text(id),
                                        n_vocab - 1));
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

class Reader {
 public:
  Reader(const Fields& body, const Model& model, bool is_first)
      : body_(body), model_(model), is_first_(is_first), suffix_(body.text("suffix").value_or("")) {
    if (suffix_.empty()) return;
    if (!is_first) body.refuse("suffix", "a document's snapshot can't be filled in");
    if (!fill_in_tokens(model.tokenizer()).complete()) {
      body.refuse("suffix",
                  "the model can't fill in: its vocabulary has no tokens for what is before and "
                  "after the gap (such as <|fim_prefix|>, <|fim_suffix|> and <|fim_middle|>)");
    }
  }

  CompletionPrompt read(const Json& value) const {
    CompletionPrompt result =
        value.is_string() ? of_text(value.get<std::string>()) : of_tokens(value);
    if (result.prompt.tokens.empty()) body_.refuse("prompt", "it is empty");
    return result;
  }

 private:
  CompletionPrompt of_text(std::string text) const {
    CompletionPrompt result;
    if (suffix_.empty()) {
      result.prompt.chat.text = text;
      result.prompt.tokens = model_.tokenize(text, /*add_special=*/is_first_);
    } else {
      result.prompt.tokens = fill_in_prompt(model_.tokenizer(), text, suffix_);
    }
    result.text = std::move(text);
    return result;
  }

  CompletionPrompt of_tokens(const Json& list) const {
    const bool is_tokens = list.is_array() && !list.empty() && list[0].is_number();
    if (!is_tokens) {
      body_.refuse("prompt", "a string, an array of tokens, or an array of either", list);
    }
    if (!suffix_.empty()) body_.refuse("suffix", "it needs a 'prompt' that is text");
    CompletionPrompt result;
    result.prompt.tokens = token_ids(body_, list, model_);
    TextStream text;
    result.text = text.push(model_.detokenize(result.prompt.tokens));
    result.text += text.finish();
    return result;
  }

  const Fields& body_;
  const Model& model_;
  const bool is_first_;
  const std::string suffix_;
};

}  // namespace

std::vector<CompletionPrompt> read_completion_prompts(const Fields& body, const ApiContext& context,
                                                      bool is_first) {
  const Json& value = body.need("prompt");
  const Reader reader(body, context.model(), is_first);
  const bool is_list = value.is_array() && !value.empty() && !value[0].is_number();
  std::vector<CompletionPrompt> prompts;
  if (!is_list) {
    prompts.push_back(reader.read(value));
    return prompts;
  }
  // one prompt does not have to wait
  const auto most = static_cast<size_t>(std::max(1, context.engine.options().max_queue));
  if (value.size() > most) {
    body.refuse("prompt", fmt::format("at most {} prompts are possible in one request, not {}",
                                      most, value.size()));
  }
  for (const Json& each : value) prompts.push_back(reader.read(each));
  return prompts;
}

}  // namespace snapkv::server
