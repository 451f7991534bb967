// SPDX-License-Identifier: MIT
#include "chat/answer_parser.h"

#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {

AnswerParser::AnswerParser(const AnswerSyntax& syntax)
    : functions_(syntax.functions),
      has_reasoning_(syntax.has_reasoning),
      tools_(syntax.tools, functions_, syntax.one_call, callbacks()),
      reasoning_(syntax.prompt_end, [this](std::string_view text, ReasoningStream::Part part) {
        if (part == ReasoningStream::Part::reasoning) add_reasoning(text);
        if (part == ReasoningStream::Part::answer) add_answer(text);
        if (part == ReasoningStream::Part::tag) {
          trims_reasoning_ = trims_answer_ = true;
          white_.clear();
        }
      }) {
  if (!syntax.any_form || syntax.tools == ToolFormat::none) return;
  const CallFinder::Options options = {.one_call = syntax.one_call,
                                       .ends_after = syntax.tools == ToolFormat::generic};
  finder_.emplace(functions_, options,
                  CallFinder::Callbacks{
                      [this](std::string_view text) { add(Piece::Kind::content, text); },
                      [this](const FoundCall& call) {
                        pieces_.push_back({Piece::Kind::tool_begin, call.name, 0});
                        add(Piece::Kind::tool_arguments, to_text(call.arguments));
                      }});
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
  const auto start = tools_.arguments_start();
  return start || !finder_ ? start : finder_->arguments_start();
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
  if (has_reasoning_) {
    reasoning_.push(text);
  } else {
    tools_.push(text);
  }
  return std::exchange(pieces_, {});
}

std::vector<Piece> AnswerParser::finish() {
  reasoning_.finish();
  tools_.finish();
  if (finder_) finder_->finish();
  return std::exchange(pieces_, {});
}

}  // namespace snapkv::chat
