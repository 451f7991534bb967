// SPDX-License-Identifier: MIT
// TextBuilder: paragraphs of text out of a page's elements.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace snapkv::documents {

class TextBuilder {
 public:
  /// Text in a line, white space in it being one blank.
  void add(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (is_soft_hyphen(text, i)) {
        ++i;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
        blank_ = true;
      } else {
        put(c);
      }
    }
  }
  /// Text as it is, its line breaks too.
  void add_as_is(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (is_soft_hyphen(text, i)) {
        ++i;
        continue;
      }
      if (c == '\r') continue;
      if (c == '\n' && newlines_ > 0 && text_.empty()) continue;
      put(c);
    }
  }
  /// At least `n` line breaks before what follows: 1 ends a line, 2 a paragraph.
  void end_line(int n) {
    newlines_ = std::max(newlines_, n);
    blank_ = false;
  }
  /// A tab between two cells of a table's row.
  void end_cell() {
    if (newlines_ == 0 && !text_.empty()) tab_ = true;
  }
  size_t size() const { return text_.size(); }
  /// The text, with one line break at its end unless it is empty.
  std::string take() {
    if (!text_.empty()) text_ += '\n';
    return std::move(text_);
  }

 private:
  /// U+00AD, where a word may be divided: nobody sees it, and it would split the word's tokens.
  static bool is_soft_hyphen(std::string_view text, size_t at) {
    return text.substr(at, 2) == "\xc2\xad";
  }
  void put(char c) {
    if (newlines_ > 0) {
      if (!text_.empty()) text_.append(static_cast<size_t>(newlines_), '\n');
    } else if (tab_) {
      text_ += '\t';
    } else if (blank_ && !text_.empty() && text_.back() != ' ' && text_.back() != '\n') {
      text_ += ' ';
    }
    newlines_ = 0;
    tab_ = blank_ = false;
    text_ += c;
  }

  std::string text_;
  int newlines_ = 0;  // before the next character
  bool tab_ = false;
  bool blank_ = false;
};

}  // namespace snapkv::documents
