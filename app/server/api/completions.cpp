// SPDX-License-Identifier: MIT
// POST /v1/completions: OpenAI's text completions, plain and as a stream.
#include <fmt/core.h>

#include "server/api/exchange.h"
#include "server/api/fields.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"

namespace snapkv::server {
namespace {

constexpr int kMostTextLogprobs = 5;  // OpenAI's

class TextAnswers : public Answers {
 public:
  TextAnswers(AnswerOptions answer_options, bool includes_usage)
      : Answers(std::move(answer_options)),
        includes_usage_(includes_usage),
        offsets_(static_cast<size_t>(options().n), 0) {}

  Json plain() const override {
    Json all = Json::array();
    for (size_t i = 0; i < choices().size(); ++i) {
      const Choice& choice = choices()[i];
      int64_t offset = 0;
      all.push_back(
          choice_json(static_cast<int>(i), choice.content,
                      options().has_logprobs ? text_logprobs_json(choice.tokens, offset) : Json(),
                      choice.finish_reason()));
    }
    Json json = head();
    json["choices"] = all;
    json["usage"] = usage_json(times());
    add_reports(json);
    return json;
  }

 private:
  Json head() const {
    return {{"id", options().id},
            {"object", "text_completion"},
            {"created", options().created},
            {"model", options().model}};
  }

  static Json choice_json(int index, const std::string& text, const Json& logprobs,
                          const Json& finish_reason) {
    return {
        {"text", text}, {"index", index}, {"logprobs", logprobs}, {"finish_reason", finish_reason}};
  }

  Json chunk(const Json& choice) const {
    Json json = head();
    json["choices"] = Json::array({choice});
    if (includes_usage_) json["usage"] = nullptr;
    return json;
  }

  void on_begin() override {}

  void on_progress(const PromptProgress& progress) override {
    Json json = chunk(choice_json(0, "", nullptr, nullptr));
    json["prompt_progress"] = progress_json(progress);
    send(event_text(json));
  }

  void on_part(int choice, const std::vector<Piece>& pieces,
               const std::vector<AnswerPart::Token>& tokens) override {
    std::string text;
    for (const Piece& piece : pieces) text += piece.text;
    const Json logprobs =
        tokens.empty() ? Json() : text_logprobs_json(tokens, offsets_[static_cast<size_t>(choice)]);
    send(event_text(chunk(choice_json(choice, text, logprobs, nullptr))));
  }

  void on_end(int choice) override {
    Json json = chunk(
        choice_json(choice, "", nullptr, choices()[static_cast<size_t>(choice)].finish_reason()));
    if (complete()) add_reports(json);
    send(event_text(json));
  }

  void on_complete() override {
    if (includes_usage_) {
      Json json = head();
      json["choices"] = Json::array();
      json["usage"] = usage_json(times());
      send(event_text(json));
    }
    send("data: [DONE]\n\n");
  }

  const bool includes_usage_;
  std::vector<int64_t> offsets_;  // of each choice: characters that its tokens' texts have so far
};

std::vector<int32_t> token_ids(const Fields& body, const Json& list, const Model& model) {
  std::vector<int32_t> ids;
  const int64_t n_vocab = model.tokenizer().n_vocab();
  for (const Json& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= n_vocab) {
      body.refuse("prompt", fmt::format("{} is no token's id, which are 0 to {}", short_text(id),
                                        n_vocab - 1));
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

/// `is_first`: it does not follow a document.
void read_prompt(const Fields& body, const Model& model, bool is_first, Prompt& prompt) {
  const Json* value = &body.need("prompt");
  const bool is_list = value->is_array();
  if (is_list && value->size() == 1 && !(*value)[0].is_number()) value = &(*value)[0];
  if (value->is_string()) {
    prompt.chat.text = value->get<std::string>();
    prompt.tokens = model.tokenize(prompt.chat.text, /*add_special=*/is_first);
  } else if (value->is_array() && !value->empty() && (*value)[0].is_number()) {
    prompt.tokens = token_ids(body, *value, model);
  } else if (is_list) {
    body.refuse("prompt", fmt::format("one prompt for each request is possible, not {}",
                                      body.need("prompt").size()));
  } else {
    body.refuse("prompt", "a string or an array of tokens", *value);
  }
  if (prompt.tokens.empty()) body.refuse("prompt", "it is empty");
}

void refuse_what_is_missing(const Fields& body) {
  if (body.boolean("echo").value_or(false)) {
    body.refuse("echo", "the prompt is not part of the answer here");
  }
  if (!body.text("suffix").value_or("").empty()) {
    body.refuse("suffix", "text can't be put in front of a suffix here");
  }
  const auto best_of = body.whole("best_of", 1, 1 << 20);
  if (best_of && *best_of != body.whole("n", 1, 1 << 20).value_or(1)) {
    body.refuse("best_of", "only as many answers as 'n' asks for are written");
  }
}

}  // namespace

Exchange read_completion(const Json& json, const ApiContext& context) {
  const Fields body(json);
  refuse_what_is_missing(body);
  Request request = read_request(body, context, "cmpl-");
  request.max_tokens = read_max_tokens(body, {"max_tokens", "n_predict"});
  request.stops = read_stops(body, "stop");
  if (const auto n = body.whole("logprobs", 0, kMostTextLogprobs)) {
    request.top_logprobs = static_cast<int>(*n);
  }
  request.grammar = read_grammar(body);
  read_prompt(body, context.model(), request.document == nullptr, request.prompt);

  const bool stream = body.boolean("stream").value_or(false);
  AnswerOptions options = answer_options(request, stream, context);
  bool includes_usage = false;
  if (const Json* given = body.object("stream_options")) {
    includes_usage = Fields(*given, "stream_options.").boolean("include_usage").value_or(false);
  }
  return {std::move(request), std::make_unique<TextAnswers>(std::move(options), includes_usage)};
}

}  // namespace snapkv::server
