// SPDX-License-Identifier: MIT
#include "cli/common/answer_text.h"

#include <algorithm>
#include <utility>

#include "cli/common/plain_text.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

constexpr size_t kLeastWidth = 20;  // narrower terminals break lines themselves
constexpr size_t kLineBegin = 8;    // bytes that tell a fence, a table's row or an indented block

size_t character_bytes(std::string_view text) {
  size_t n = 1;
  while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80) ++n;
  return n;
}

/// Marks that belong to the character before them: accents, variation selectors, skin tones.
bool is_mark(std::string_view c) {
  const bool is_accent = c >= "\u0300" && c <= "\u036f";
  const bool is_selector = c >= "\ufe00" && c <= "\ufe0f";
  const bool is_tone = c >= "\U0001f3fb" && c <= "\U0001f3ff";
  return c == "\u200d" || is_accent || is_selector || is_tone;
}

/// Punctuation of wide scripts that no line may begin with.
bool closes(std::string_view c) {
  constexpr std::string_view kClosing[] = {"。", "，", "、", "！", "？", "；", "：", "）", "」",
                                           "』", "】", "》", "〉", "］", "｝", "ー", "々"};
  return std::find(std::begin(kClosing), std::end(kClosing), c) != std::end(kClosing);
}

std::string_view trimmed_begin(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

}  // namespace

AnswerText::AnswerText(bool wraps)
    : AnswerText(wraps && stdout_is_terminal() ? static_cast<size_t>(stdout_width()) : 0,
                 [](std::string_view text) { write_stdout(text); }) {}

AnswerText::AnswerText(size_t width, std::function<void(std::string_view)> write)
    : width_(width < kLeastWidth ? 0 : width), write_(std::move(write)) {}

bool AnswerText::is_verbatim() const {
  const bool is_block = line_begin_.starts_with("    ") || line_begin_.starts_with('\t');
  return width_ == 0 || in_code_ || is_block || trimmed_begin(line_begin_).starts_with('|');
}

void AnswerText::put(std::string_view text) {
  if (text.empty()) return;
  out_.append(n_newlines_, '\n');
  n_newlines_ = 0;
  out_ += text;
}

void AnswerText::place_word() {
  const size_t n_blanks = n_columns(blanks_);
  const bool fits = column_ + n_blanks + word_columns_ <= width_;
  if (!fits && column_ > 0 && !word_.empty() && !is_verbatim()) {
    put("\n");
    column_ = 0;
  } else {
    put(blanks_);
    column_ += n_blanks;
  }
  put(word_);
  column_ += word_columns_;
  if (width_ > 0 && column_ > width_) column_ %= width_;  // the terminal has broken the line
  blanks_.clear();
  word_.clear();
  word_columns_ = 0;
  is_joined_ = false;
}

void AnswerText::end_line() {
  place_word();
  is_long_ = false;
  const std::string_view begin = trimmed_begin(line_begin_);
  if (begin.starts_with("```") || begin.starts_with("~~~")) in_code_ = !in_code_;
  line_begin_.clear();
  column_ = 0;
  ++n_newlines_;
}

void AnswerText::add_to_word(std::string_view character) {
  if (is_long_) {
    put(character);
    column_ = (column_ + n_columns(character)) % width_;
    return;
  }
  const bool is_wide = n_columns(character) > 1;
  const bool belongs = is_joined_ || is_mark(character) || closes(character);
  if (is_wide && !belongs && !word_.empty()) place_word();
  word_ += character;
  word_columns_ += is_mark(character) ? 0 : n_columns(character);
  is_joined_ = character == "\u200d";
  if (word_columns_ <= width_) return;
  place_word();
  is_long_ = width_ > 0;
}

void AnswerText::add(std::string_view character) {
  if (character == "\n") return end_line();
  if (character == " " || character == "\t") is_long_ = false;
  if (line_begin_.size() < kLineBegin) line_begin_ += character;
  if (character != " " && character != "\t") return add_to_word(character);
  if (!word_.empty()) place_word();
  blanks_ += character;
}

void AnswerText::write(std::string_view text) {
  while (!text.empty()) {
    const size_t n = character_bytes(text);
    add(text.substr(0, n));
    text.remove_prefix(n);
  }
  if (!out_.empty()) write_(std::exchange(out_, ""));
}

void AnswerText::flush() {
  place_word();
  if (!out_.empty()) write_(std::exchange(out_, ""));
}

void AnswerText::finish() {
  flush();
  n_newlines_ = 0;
  write_("\n");
}

}  // namespace snapkv::cli
