// SPDX-License-Identifier: MIT
// POST /v1/completions: OpenAI's text completions, plain and streamed.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "server/api/completion_answers.h"
#include "server/api/completion_prompts.h"
#include "server/api/exchange.h"
#include "server/api/generation_fields.h"
#include "server/api/grammars.h"
#include "server/api/kv_fields.h"
#include "server/api/unsupported_fields.h"
#include "snapkv/sources.h"

namespace snapkv::server {
namespace {

constexpr int kMostTextLogprobs = 5;  // OpenAI's limit
/// Tokens of an answer to which no limit is given: many models never end a text.
constexpr int64_t kMostUnasked = 1024;

class TextAnswers : public CompletionAnswers {
 public:
  /// `echoes`: the text before the choices of each prompt; empty: none.
  TextAnswers(AnswerOptions answer_options, bool includes_usage, std::vector<std::string> echoes)
      : CompletionAnswers(std::move(answer_options), "text_completion", "text_completion",
                          includes_usage),
        echoes_(std::move(echoes)),
        offsets_(options().n, 0) {}

 private:
  static Json choice_json(size_t index, const std::string& text, const Json& logprobs,
                          const Json& finish_reason) {
    return {
        {"text", text}, {"index", index}, {"logprobs", logprobs}, {"finish_reason", finish_reason}};
  }

  /// Returns the echo of a choice's prompt.
  std::string echo(size_t choice) const {
    if (echoes_.empty()) return "";
    return echoes_[choice * echoes_.size() / options().n];
  }

  Json whole_choice(size_t index) const override {
    const Choice& choice = choices()[index];
    int64_t offset = 0;
    return choice_json(index, echo(index) + choice.content,
                       options().has_logprobs
                           ? text_logprobs_json(choice.tokens, offset, choice.prompt_tokens)
                           : Json(),
                       choice.finish_reason());
  }

  Json empty_choice(size_t choice) const override {
    return choice_json(choice, "", nullptr, nullptr);
  }

  void on_begin() override {
    if (echoes_.empty()) return;
    for (size_t i = 0; i < options().n; ++i) send_chunk(choice_json(i, echo(i), nullptr, nullptr));
  }

  void on_part(size_t choice, const std::vector<Piece>& pieces,
               const std::vector<AnswerPart::Token>& tokens) override {
    std::string text;
    for (const Piece& piece : pieces) text += piece.text;
    const Json logprobs = tokens.empty() ? Json() : text_logprobs_json(tokens, offsets_[choice]);
    send_chunk(choice_json(choice, text, logprobs, nullptr));
  }

  const std::vector<std::string> echoes_;
  std::vector<int64_t> offsets_;  // of each choice: characters in the text of its tokens so far
};

void refuse_best_of(const Fields& body, int n) {
  const auto best_of = body.whole("best_of", 1, 1 << 20);
  if (best_of && *best_of != n) {
    body.refuse("best_of", "only as many answers as 'n' asks for are written");
  }
}

/// The probabilities of the prompt's tokens come of reading all of it.
void score_prompt(const Fields& body, bool stream, Request& request) {
  if (stream) body.refuse("echo", "with 'logprobs' it is not possible in a stream");
  if (request.document) body.refuse("echo", "a document's tokens have no 'logprobs'");
  request.scores_prompt = true;
  request.reuses = false;
}

void refuse_of_several(const Fields& body, const Request& request) {
  if (request.reports_progress) {
    body.refuse("return_progress", "it is possible with one prompt only");
  }
  if (!reports_positions(request.kv_report) && !reports_sources(request.kv_report)) return;
  body.refuse("kv_report",
              fmt::format("{} is possible with one prompt only", body.find("kv_report")->dump()));
}

void cite(const Model& model, const std::string& prompt, Request& request) {
  if (!reports_sources(request.kv_report)) return;
  request.citable = {{0, std::string(text_before_question(prompt))}};
  if (request.document != nullptr) cite_snapshot(model, request);
}

}  // namespace

Exchange read_completion(const Json& json, const ApiContext& context) {
  const Fields body(json);
  Request request = read_request(body, context, "cmpl-");
  refuse_unsupported(body, Api::completions, request.warnings);
  refuse_best_of(body, request.n);
  if (body.has("long") && request.long_mode != LongMode::refuse) {
    body.refuse("long", "it is for messages, where a document and a question can be told apart");
  }
  request.max_tokens = read_max_tokens(body, {"max_tokens", "n_predict"}, 0);
  const bool is_limited = body.has("max_tokens") || body.has("n_predict");
  if (!is_limited) request.max_tokens = kMostUnasked;
  request.stops = read_stops(body, "stop");
  if (const auto n = body.whole("logprobs", 0, kMostTextLogprobs)) {
    request.top_logprobs = static_cast<int>(*n);
  }
  request.grammar = read_grammar(body, request.warnings);
  const bool echo = body.boolean("echo").value_or(false);
  const bool stream = body.boolean("stream").value_or(false);
  if (echo && request.top_logprobs >= 0) score_prompt(body, stream, request);
  std::vector<CompletionPrompt> prompts =
      read_completion_prompts(body, context, request.document == nullptr);
  if (prompts.size() > 1) refuse_of_several(body, request);
  cite(context.model(), prompts[0].text, request);

  note_unread(body, request);
  AnswerOptions options = answer_options(request, stream, context);
  options.n *= prompts.size();
  std::vector<std::string> echoes;
  for (CompletionPrompt& prompt : prompts) {
    if (echo) echoes.push_back(std::move(prompt.text));
  }
  std::vector<Request> others(prompts.size() - 1, request);
  for (size_t i = 0; i < others.size(); ++i) others[i].prompt = std::move(prompts[i + 1].prompt);
  request.prompt = std::move(prompts[0].prompt);
  return {std::move(request),
          std::make_unique<TextAnswers>(std::move(options), read_includes_usage(body, stream),
                                        std::move(echoes)),
          std::move(others)};
}

}  // namespace snapkv::server
