// SPDX-License-Identifier: MIT
// Answers as AnswerParser separates them, as one text, for every cut of the answer.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chat/answer_parser.h"

namespace snapkv::chat {

/// Gives a parser the text in two pieces, cut after `cut` bytes, or byte by byte, and `take` what it
/// finds.
template <typename Take>
void read_answer(AnswerParser& parser, const std::string& text, size_t cut, bool by_bytes,
                 const Take& take) {
  if (by_bytes) {
    for (const char c : text) take(parser.push(std::string(1, c)));
  } else {
    take(parser.push(text.substr(0, cut)));
    take(parser.push(text.substr(cut)));
  }
  take(parser.finish());
}

/// "text|call NAME(ARGUMENTS)|...", for a text that comes in two pieces, cut after `cut` bytes, or
/// byte by byte.
inline std::string parsed(const AnswerSyntax& syntax, const std::string& text, size_t cut,
                   bool by_bytes = false) {
  AnswerParser parser(syntax);
  std::string all;
  Piece::Kind last = Piece::Kind::tool_arguments;
  bool begun = false;
  const auto take = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      if (piece.kind == Piece::Kind::tool_begin) {
        all += (begun && last == Piece::Kind::tool_arguments ? ")" : "");
        all += "|call " + piece.text + "(";
      } else {
        const bool same =
            begun && (piece.kind == last || (piece.kind == Piece::Kind::tool_arguments &&
                                             last == Piece::Kind::tool_begin));
        if (!same && begun && last == Piece::Kind::tool_arguments) all += ")";
        if (!same) all += piece.kind == Piece::Kind::reasoning ? "|think " : "|";
        all += piece.text;
      }
      last = piece.kind;
      begun = true;
    }
  };
  read_answer(parser, text, cut, by_bytes, take);
  if (begun && last == Piece::Kind::tool_arguments) all += ")";
  return all;
}

struct Case {
  ToolFormat format;
  std::string text, expected;
};

inline void expect_parsed(const AnswerSyntax& syntax, const Case& c) {
  for (size_t cut = 0; cut <= c.text.size(); ++cut) {
    ASSERT_EQ(parsed(syntax, c.text, cut), c.expected) << c.text << " cut at " << cut;
  }
  ASSERT_EQ(parsed(syntax, c.text, 0, true), c.expected) << c.text << " byte by byte";
}

}  // namespace snapkv::chat
