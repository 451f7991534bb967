// SPDX-License-Identifier: MIT
// TextBuilder: paragraphs of text out of a page's elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  /// At least `n` line breaks before what follows: 1 ends a line, 2 a paragraph. A cell's first
  /// text stays in the line of its row.
  void end_line(int n) {
    if (!cells_.empty() && !cells_.back().has_text) return;
    newlines_ = std::max(newlines_, n);
    n_tabs_ = 0;
    blank_ = false;
  }
  /// Between begin_cell() and end_cell() a single paragraph is as good as its text alone.
  void begin_cell() {
    if (!cells_.empty()) cells_.back().has_paragraphs = true;  // a table in it
    cells_.emplace_back();
  }
  /// A tab between two cells of a table's row, which may be empty; begin_cell() may be left out.
  void end_cell() {
    Cell cell;
    if (!cells_.empty()) {
      cell = cells_.back();
      cells_.pop_back();
      if (!cells_.empty()) cells_.back().has_text |= cell.has_text;
    }
    if (cell.has_text && newlines_ > 0) {
      if (cell.has_paragraphs) return;
      newlines_ = 0;
    }
    ++n_tabs_;
  }
  size_t size() const { return text_.size(); }
  /// The text, with one line break at its end unless it is empty.
  std::string take() {
    if (!text_.empty()) text_ += '\n';
    return std::move(text_);
  }

 private:
  struct Cell {
    bool has_text = false;
    bool has_paragraphs = false;  // several: the cell is no value, but a part of the page
  };

  /// U+00AD, where a word may be divided: nobody sees it, and it would split the word's tokens.
  static bool is_soft_hyphen(std::string_view text, size_t at) {
    return text.substr(at, 2) == "\xc2\xad";
  }
  void put(char c) {
    if (!cells_.empty()) {
      Cell& cell = cells_.back();
      cell.has_paragraphs = cell.has_paragraphs || (cell.has_text && newlines_ > 0);
      cell.has_text = true;
    }
    if (newlines_ > 0 && !text_.empty()) text_.append(static_cast<size_t>(newlines_), '\n');
    if (n_tabs_ > 0) {
      text_.append(n_tabs_, '\t');
    } else if (newlines_ == 0 && blank_ && !text_.empty() && text_.back() != ' ' &&
               text_.back() != '\n') {
      text_ += ' ';
    }
    newlines_ = 0;
    n_tabs_ = 0;
    blank_ = false;
    text_ += c;
  }

  std::string text_;
  int newlines_ = 0;   // before the next character
  size_t n_tabs_ = 0;  // after these
  bool blank_ = false;
  std::vector<Cell> cells_;  // those around
};

}  // namespace snapkv::documents
