// SPDX-License-Identifier: MIT
// AnswerText: an answer as it is written to stdout while it is generated. It ends in exactly one
// newline, and on a terminal its lines break between words.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace snapkv::cli {

class AnswerText {
 public:
  /// Writes to stdout. `wraps`: lines break between words where stdout is a terminal.
  explicit AnswerText(bool wraps);
  /// Gives `write` the text, with lines of at most `width` columns; 0: lines stay as they are.
  /// Blocks of code, rows of tables and words that are wider stay whole, so that what is copied
  /// from the terminal can be used.
  AnswerText(size_t width, std::function<void(std::string_view)> write);

  /// Complete UTF-8 characters. The last word is held back until it ends, and so are newlines,
  /// which may be the answer's last.
  void write(std::string_view text);
  /// Writes the word that is held back: before escape sequences, for example.
  void flush();
  /// Ends the answer, and its last line.
  void finish();

 private:
  void add(std::string_view character);
  void add_to_word(std::string_view character);
  void end_line();
  void place_word();
  void put(std::string_view text);
  bool is_verbatim() const;

  size_t width_;
  std::function<void(std::string_view)> write_;
  std::string out_;         // what write() has placed
  std::string line_begin_;  // of the text's line, as much as tells what it is
  bool in_code_ = false;    // between lines of ``` or ~~~
  size_t column_ = 0;       // of the terminal's line
  std::string blanks_;      // before the word
  std::string word_;        // held back
  size_t word_columns_ = 0;
  bool is_joined_ = false;  // the word's last character joins the next one to it
  bool is_long_ = false;    // the word is wider than a line, and is written as it comes
  size_t n_newlines_ = 0;   // held back
};

}  // namespace snapkv::cli
