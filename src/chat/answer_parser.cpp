// SPDX-License-Identifier: MIT
#include "chat/answer_parser.h"

#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

/// Between reasoning and text, where both are the answer.
constexpr std::string_view kBetween = "\n\n";

}  // namespace

AnswerParser::AnswerParser(const AnswerSyntax& syntax)
    : functions_(syntax.functions),
      has_reasoning_(syntax.has_reasoning),
      tools_(syntax.tools, functions_, syntax.one_call, syntax.prompt_end, callbacks()),
      reasoning_(syntax.prompt_end, [this](std::string_view text, ReasoningStream::Part part) {
        if (part == ReasoningStream::Part::reasoning) add_reasoning(text);
        if (part == ReasoningStream::Part::answer) add_answer(text);
        if (part == ReasoningStream::Part::tag) {
          trims_reasoning_ = trims_answer_ = true;
          white_.clear();
        }
      }) {
  if (syntax.is_harmony) {
    const HarmonyStream::Options options = {.takes_calls = !functions_.empty(),
                                            .one_call = syntax.one_call};
    harmony_.emplace(syntax.prompt_end, options, harmony_callbacks());
  }
  if (!syntax.any_form || syntax.tools == ToolFormat::none) return;
  const CallFinder::Options options = {.one_call = syntax.one_call,
                                       .ends_after = syntax.tools == ToolFormat::generic};
  finder_.emplace(
      functions_, options,
      CallFinder::Callbacks{[this](std::string_view text) { add(Piece::Kind::content, text); },
                            [this](const FoundCall& call) {
                              pieces_.push_back({Piece::Kind::tool_begin, call.name, 0});
                              add(Piece::Kind::tool_arguments, to_text(call.arguments));
                            }});
}

/// The text of harmony's messages passes ToolStream: calls in it have other forms.
HarmonyStream::Callbacks AnswerParser::harmony_callbacks() {
  const ToolStream::Callbacks of_calls = callbacks();
  return {[this](std::string_view text) {
            if (std::exchange(ends_reasoning_, false) && text != kBetween) tools_.push(kBetween);
            tools_.push(text);
          },
          [this](std::string_view text) {
            if (has_reasoning_) {
              add_reasoning(text);
            } else {
              add(Piece::Kind::content, text);
              ends_reasoning_ = true;
            }
          },
          of_calls.begin, of_calls.arguments};
}

/// What ToolStream leaves as text may hold calls of other forms.
ToolStream::Callbacks AnswerParser::callbacks() {
  return {[this](std::string_view text) {
            if (finder_) {
              finder_->push(text);
            } else {
              add(Piece::Kind::content, text);
            }
          },
          [this](const std::string& name) {
            if (finder_) finder_->begin_other_call();
            if (finder_ && finder_->ended()) return;
            pieces_.push_back({Piece::Kind::tool_begin, name, 0});
          },
          [this](std::string_view part) {
            if (!finder_ || !finder_->ended()) add(Piece::Kind::tool_arguments, part);
          }};
}

std::optional<ArgumentsStart> AnswerParser::arguments_start() const {
  if (harmony_) {
    const std::string& function = harmony_->awaits_arguments_of();
    if (functions_.contains(function)) {
      return ArgumentsStart{function, ArgumentsStart::After::header};
    }
  }
  const auto start = tools_.arguments_start();
  return start || !finder_ ? start : finder_->arguments_start();
}

bool AnswerParser::awaits_call() const {
  return harmony_ ? harmony_->awaits_name() : tools_.awaits_call();
}

void AnswerParser::add(Piece::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (pieces_.empty() || pieces_.back().kind != kind) pieces_.push_back({kind, "", 0});
  pieces_.back().text += text;
}

void AnswerParser::add_reasoning(std::string_view text) {
  if (trims_reasoning_) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    if (text.empty()) return;
    trims_reasoning_ = false;
  }
  const size_t end = text.find_last_not_of(kSpaces) + 1;
  if (end > 0) {
    add(Piece::Kind::reasoning, std::exchange(white_, {}));
    add(Piece::Kind::reasoning, text.substr(0, end));
  }
  white_ += text.substr(end);
}

void AnswerParser::add_answer(std::string_view text) {
  if (trims_answer_) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    if (text.empty()) return;
    trims_answer_ = false;
  }
  tools_.push(text);
}

std::vector<Piece> AnswerParser::push(std::string_view text) {
  if (harmony_) {
    harmony_->push(text);
  } else if (has_reasoning_) {
    reasoning_.push(text);
  } else {
    tools_.push(text);
  }
  return std::exchange(pieces_, {});
}

std::vector<Piece> AnswerParser::finish() {
  if (harmony_) harmony_->finish();
  reasoning_.finish();
  tools_.finish();
  if (finder_) finder_->finish();
  return std::exchange(pieces_, {});
}

}  // namespace snapkv::chat
