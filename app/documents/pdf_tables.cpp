// SPDX-License-Identifier: MIT
#include "documents/pdf_tables.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace snapkv::documents {
namespace {

/// Blanks that separate cells; between words there is one.
constexpr size_t kGap = 2;

/// A part of a line between gaps: its columns, which are characters, and its bytes.
struct Cell {
  size_t begin = 0, end = 0;  // columns
  std::string_view text;
};

struct Line {
  std::vector<Cell> cells;  // none: an empty line
};

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// "•", "12." or "a)" before an item of a list: no cell of a table.
bool is_item_mark(std::string_view text) {
  constexpr size_t kMost = 4;  // bytes
  if (text.size() > kMost) return false;
  if (text.back() == '.' || text.back() == ')') return true;
  return std::none_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
}

Line read_line(std::string_view text) {
  Line line;
  size_t column = 0;
  size_t n_blank = kGap;
  const char* begin = text.data();
  for (size_t at = 0; at < text.size(); ++column) {
    const size_t length = utf8::length_by_lead(text[at]);
    if (text[at] == ' ') {
      ++n_blank;
    } else {
      const bool is_item = line.cells.size() == 1 && is_item_mark(line.cells.front().text);
      if (line.cells.empty() || (n_blank >= kGap && !is_item)) {
        begin = text.data() + at;
        line.cells.push_back({.begin = column, .end = column, .text = {}});
      }
      Cell& cell = line.cells.back();
      cell.end = column + 1;
      cell.text = {begin, static_cast<size_t>(text.data() + at - begin) + length};
      n_blank = 0;
    }
    at += length;
  }
  return line;
}

size_t count_words(std::string_view text) {
  size_t n = 0;
  bool is_word = false;
  for (const char c : text) {
    const bool was_word = std::exchange(is_word, c != ' ');
    if (is_word && !was_word) ++n;
  }
  return n;
}

bool is_prose(const Cell& cell) { return cell.text.size() >= 16 && count_words(cell.text) >= 3; }

/// Whether the page's text stands in columns: lines have sentences side by side, or many begin far
/// to the right.
bool has_text_columns(const std::vector<Line>& lines) {
  constexpr size_t kFewest = 3, kFarRight = 35;
  size_t margin = std::string_view::npos;
  for (const Line& line : lines) {
    if (!line.cells.empty()) margin = std::min(margin, line.cells[0].begin);
  }
  size_t n_pairs = 0, n_right = 0, n_left = 0;
  for (const Line& line : lines) {
    for (size_t i = 0; i + 1 < line.cells.size(); ++i) {
      if (!is_prose(line.cells[i]) || !is_prose(line.cells[i + 1])) continue;
      ++n_pairs;
      break;
    }
    if (line.cells.size() != 1 || !is_prose(line.cells[0])) continue;
    ++(line.cells[0].begin >= margin + kFarRight ? n_right : n_left);
  }
  return n_pairs >= kFewest || (n_right >= kFewest && 2 * n_right >= n_left);
}

/// Lines [begin, end) of a page, and the columns in which one of them has text.
struct Block {
  size_t begin = 0, end = 0;
  std::vector<bool> is_used;
};

void use(const Line& line, std::vector<bool>& is_used) {
  for (const Cell& cell : line.cells) {
    if (is_used.size() < cell.end) is_used.resize(cell.end);
    std::fill(is_used.begin() + static_cast<std::ptrdiff_t>(cell.begin),
              is_used.begin() + static_cast<std::ptrdiff_t>(cell.end), true);
  }
}

/// The columns where a table's cells begin, but for the first: those after gaps in all its lines.
std::vector<size_t> find_columns(const std::vector<bool>& is_used) {
  std::vector<size_t> columns;
  size_t n_blank = 0;
  bool has_text = false;
  for (size_t i = 0; i < is_used.size(); ++i) {
    if (is_used[i] && has_text && n_blank >= kGap) columns.push_back(i);
    n_blank = is_used[i] ? 0 : n_blank + 1;
    has_text = has_text || is_used[i];
  }
  return columns;
}

/// The lines from `begin` on that have common columns.
Block find_block(const std::vector<Line>& lines, size_t begin) {
  constexpr size_t kMostEmpty = 1;
  Block block = {.begin = begin, .end = begin + 1, .is_used = {}};
  use(lines[begin], block.is_used);
  size_t n_columns = find_columns(block.is_used).size();
  for (size_t i = begin + 1; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const size_t n_empty = i - block.end;
    if (line.cells.empty()) {
      if (n_empty >= kMostEmpty) break;
      continue;
    }
    std::vector<bool> is_used = block.is_used;
    use(line, is_used);
    const size_t n = find_columns(is_used).size();
    const bool is_row = line.cells.size() > 1 && (n >= n_columns || n_empty == 0);
    // one cell: the rest of the row before, or the name of the rows that follow
    const bool is_rest = line.cells.size() == 1 && n == n_columns && n_empty == 0;
    if (n == 0 || (!is_row && !is_rest)) break;
    block.is_used = std::move(is_used);
    block.end = i + 1;
    n_columns = n;
  }
  return block;
}

bool is_table(const std::vector<Line>& lines, const Block& block) {
  size_t n_rows = 0, n_wide = 0;
  for (size_t i = block.begin; i < block.end; ++i) {
    if (lines[i].cells.size() >= 2) ++n_rows;
    if (lines[i].cells.size() >= 3) ++n_wide;
  }
  return n_rows >= 3 || n_wide >= 2;
}

/// Drops the hyphen of a word that goes on in the next line, as pdftotext does in reading order.
void join_word(std::string& text, std::string_view next) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const size_t n = text.size();
  if (n < 3 || !text.ends_with("-\n") || !is_lower(text[n - 3])) return;
  if (!next.empty() && is_lower(next.front())) text.resize(n - 2);
}

/// Of several empty lines one is enough.
void append_line(std::string& text, const Line& line) {
  if (line.cells.empty() && (text.empty() || text.ends_with("\n\n"))) return;
  for (size_t i = 0; i < line.cells.size(); ++i) {
    if (i == 0) join_word(text, line.cells[0].text);
    if (i > 0) text += ' ';
    text += line.cells[i].text;
  }
  text += '\n';
}

void append_row(std::string& text, const Line& line, const std::vector<size_t>& columns) {
  size_t at = 0;  // the column of the table where the line is
  for (size_t i = 0; i < line.cells.size(); ++i) {
    const Cell& cell = line.cells[i];
    const size_t n_before = at;
    while (at < columns.size() && columns[at] <= cell.begin) ++at;
    text.append(at - n_before, '\t');
    if (i > 0 && at == n_before) text += ' ';
    text += cell.text;
  }
  text += '\n';
}

}  // namespace

bool may_have_table(std::string_view page) {
  constexpr size_t kMostBytes = 40;
  constexpr int kFewest = 4;
  int n_short = 0;  // paragraphs of one short line, one after the other
  size_t n_lines = 0, n_bytes = 0;
  const auto end_paragraph = [&] {
    if (n_lines > 0) n_short = n_lines == 1 && n_bytes <= kMostBytes ? n_short + 1 : 0;
    n_lines = n_bytes = 0;
  };
  for (const std::string_view line : split_lines(page)) {
    if (line.empty()) end_paragraph();
    if (n_short >= kFewest) return true;
    if (line.empty()) continue;
    ++n_lines;
    n_bytes += line.size();
  }
  end_paragraph();
  return n_short >= kFewest;
}

std::optional<std::string> page_with_tables(std::string_view page) {
  constexpr size_t kMostColumns = 1000;
  std::vector<Line> lines;
  for (const std::string_view text : split_lines(page)) {
    lines.push_back(read_line(text));
    if (!lines.back().cells.empty() && lines.back().cells.back().end > kMostColumns) return {};
  }
  if (has_text_columns(lines)) return {};
  std::string text;
  bool has_table = false;
  for (size_t i = 0; i < lines.size();) {
    if (lines[i].cells.size() < 2) {
      append_line(text, lines[i++]);
      continue;
    }
    const Block block = find_block(lines, i);
    const bool is_one = is_table(lines, block);
    has_table = has_table || is_one;
    const std::vector<size_t> columns = find_columns(block.is_used);
    for (; i < block.end; ++i) {
      if (!is_one) append_line(text, lines[i]);
      if (is_one && !lines[i].cells.empty()) append_row(text, lines[i], columns);
    }
  }
  return has_table ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace snapkv::documents
