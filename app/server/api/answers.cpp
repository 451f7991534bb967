// SPDX-License-Identifier: MIT
#include "server/api/answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/api/kv_fields.h"
#include "server/api/tools.h"

namespace snapkv::server {

namespace {

/// Adds up what reading the prompts of one body took.
void add_prompt(PromptRead& all, const PromptRead& one) {
  if (all.kv.policy.empty()) {
    all = one;
    return;
  }
  all.n_tokens += one.n_tokens;
  all.n_reused += one.n_reused;
  all.n_stored += one.n_stored;
  all.seconds = std::max(all.seconds, one.seconds);
  all.queue_seconds = std::max(all.queue_seconds, one.queue_seconds);
  all.kv.tokens_before += one.kv.tokens_before;
  all.kv.tokens_kept += one.kv.tokens_kept;
  all.kv.bytes_before += one.kv.bytes_before;
  all.kv.bytes_after += one.kv.bytes_after;
  all.kv.compress_seconds += one.kv.compress_seconds;
  all.kv.reused_tokens += one.kv.reused_tokens;
}

}  // namespace

Answers::Answers(AnswerOptions options) : options_(std::move(options)), n_open_(options_.n) {
  for (size_t i = 0; i < options_.n; ++i) choices_.emplace_back(options_.syntax);
}

const char* Answers::Choice::finish_reason() const {
  if (end && end->reason == FinishReason::length) return "length";
  return ends_with_call() ? "tool_calls" : "stop";
}

std::string Answers::finish_reasons() const {
  std::string all;
  for (const Choice& choice : choices_) {
    const std::string reason = choice.end ? choice.finish_reason() : "unfinished";
    if (all.find(reason) == std::string::npos) all += (all.empty() ? "" : ", ") + reason;
  }
  return all;
}

void Answers::begin() {
  if (begun_) return;
  begun_ = true;
  if (options_.stream) on_begin();
}

/// Text of some tokens is held back until it is known what it belongs to, so their tokens are too.
void Answers::add_tokens(Choice& choice, const std::vector<Piece>& pieces,
                         const std::vector<AnswerPart::Token>& tokens) {
  const auto append = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  append(choice.tokens, tokens);
  append(choice.held_tokens, tokens);
  for (const Piece& piece : pieces) {
    if (piece.kind == Piece::Kind::content) append(choice.text_tokens, choice.held_tokens);
    choice.held_tokens.clear();
  }
}

/// The tokens of a part are reasoning where its first piece is; a part without pieces belongs to
/// the next one.
void Answers::count_reasoning(Choice& choice, const std::vector<Piece>& pieces, int64_t n_tokens) {
  choice.n_held += n_tokens;
  if (pieces.empty()) return;
  if (pieces.front().kind == Piece::Kind::reasoning) choice.n_reasoning += choice.n_held;
  choice.n_held = 0;
}

void Answers::add(size_t index, std::vector<Piece> pieces,
                  const std::vector<AnswerPart::Token>& tokens) {
  Choice& choice = choices_[index];
  for (Piece& piece : pieces) {
    switch (piece.kind) {
      case Piece::Kind::content:
        choice.content += piece.text;
        break;
      case Piece::Kind::reasoning:
        choice.reasoning += piece.text;
        break;
      case Piece::Kind::tool_begin:
        choice.calls.push_back({tool_call_id(options_.syntax.tools), piece.text, ""});
        break;
      case Piece::Kind::tool_arguments:
        choice.calls.back().arguments += piece.text;
        break;
    }
    if (!choice.calls.empty()) piece.call = choice.calls.size() - 1;
  }
  if (!options_.stream) {
    add_tokens(choice, pieces, tokens);
  } else if (!pieces.empty() || !tokens.empty()) {
    on_part(index, pieces, tokens);
  }
}

std::string Answers::take(const Update& update) {
  begin();
  if (const auto* progress = std::get_if<PromptProgress>(&update)) {
    if (options_.stream) on_progress(*progress);
  } else if (const auto* read = std::get_if<PromptRead>(&update)) {
    add_prompt(prompt_, *read);
  } else if (const auto* part = std::get_if<AnswerPart>(&update)) {
    Choice& choice = choices_.at(part->choice);
    if (part->of_prompt) {
      choice.prompt_tokens = part->tokens;
      return sent();
    }
    std::vector<Piece> pieces = choice.parser->push(part->text);
    count_reasoning(choice, pieces, part->n_tokens);
    add(part->choice, std::move(pieces), part->tokens);
  } else if (const auto* end = std::get_if<AnswerEnd>(&update)) {
    Choice& choice = choices_.at(end->choice);
    add(end->choice, choice.parser->finish(), {});
    choice.end = *end;
    if (choice.calls.empty() && !choice.content.empty()) {  // the text of a stop string is left out
      choice.text_tokens.insert(choice.text_tokens.end(), choice.held_tokens.begin(),
                                choice.held_tokens.end());
    }
    --n_open_;
    if (options_.stream) {
      on_end(end->choice);
      if (complete()) on_complete();
    }
  }
  return sent();
}

AnswerTimes Answers::times() const {
  AnswerTimes times;
  times.n_prompt = prompt_.n_tokens;
  times.n_reused = prompt_.n_reused;
  times.n_stored = prompt_.n_stored;
  times.prompt_seconds = prompt_.seconds;
  for (const Choice& choice : choices_) {
    times.n_reasoning += choice.n_reasoning;
    if (!choice.end) continue;
    times.n_generated += choice.end->n_generated;
    times.n_drafted += choice.end->n_drafted;
    times.n_accepted += choice.end->n_accepted;
    times.answer_seconds = std::max(times.answer_seconds, choice.end->seconds);
  }
  return times;
}

void Answers::add_reports(Json& json) const {
  json["timings"] = timings_json(times());
  if (options_.kv_report == KvReportLevel::none) return;
  json["kv"] = kv_json(prompt_.kv);
  if (!long_report_.is_null()) json["kv"]["long"] = long_report_;
  if (reports_sources(options_.kv_report)) json["kv"]["sources"] = sources_json();
}

Json Answers::sources_json() const {
  Json json = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (!choices_[i].end) continue;
    for (const CitedPassage& passage : choices_[i].end->sources) {
      const bool is_stored = passage.index == kSnapshotText;
      Json each = {{is_stored ? "snapshot" : "message",
                    is_stored ? Json(options_.snapshot) : Json(passage.index)},
                   {"begin", passage.begin},
                   {"end", passage.end},
                   {"attention", passage.attention},
                   {"text", passage.text}};
      if (choices_.size() > 1) each["choice"] = i;
      json.push_back(std::move(each));
    }
  }
  return json;
}

std::string Answers::failed(const ApiError& error) { return event_text(openai_error(error)); }

}  // namespace snapkv::server
