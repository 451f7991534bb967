// SPDX-License-Identifier: MIT
#include "chat/answer_parser.h"

#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {

AnswerParser::AnswerParser(const AnswerSyntax& syntax)
    : has_reasoning_(syntax.has_reasoning),
      tools_(syntax.tools, syntax.functions, syntax.one_call,
             {[this](std::string_view text) { add(Piece::Kind::content, text); },
              [this](const std::string& name) {
                pieces_.push_back({Piece::Kind::tool_begin, name, 0});
              },
              [this](std::string_view part) { add(Piece::Kind::tool_arguments, part); }}),
      reasoning_(syntax.prompt_end, [this](std::string_view text, ReasoningStream::Part part) {
        if (part == ReasoningStream::Part::reasoning) add_reasoning(text);
        if (part == ReasoningStream::Part::answer) add_answer(text);
        if (part == ReasoningStream::Part::tag) {
          trims_reasoning_ = trims_answer_ = true;
          white_.clear();
        }
      }) {}

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
  return std::exchange(pieces_, {});
}

}  // namespace snapkv::chat
