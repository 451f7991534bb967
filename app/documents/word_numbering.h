// SPDX-License-Identifier: MIT
// WordNumbering: the numbers and bullets before the paragraphs of a Word document. The document
// does not hold them as text: Word counts the paragraphs of each list and level.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "documents/archive.h"

namespace snapkv::documents {

/// What a paragraph says of its number itself; the rest comes from its style.
struct WordParagraph {
  std::string style;
  std::optional<int64_t> list;  ///< <w:numId>; 0: in no list
  std::optional<int64_t> level;
};

/// One level of a list (<w:lvl>). Not a member, which Clang could not construct in an optional.
struct WordListLevel {
  int64_t start = 0;
  std::string format = "decimal";  ///< <w:numFmt>
  size_t width = 0;                ///< of decimal numbers, with zeros before them
  std::string text;                ///< "%1.%2." for the numbers of the first two levels
  std::string style;               ///< the paragraph style whose paragraphs are at this level
  std::optional<int64_t> restart;  ///< the levels before this one let it begin anew; 0: none
  bool is_legal = false;           ///< all numbers are decimal
  bool has_blank = true;           ///< after the number
};

class WordNumbering {
 public:
  /// Reads word/numbering.xml and word/styles.xml of the archive, where they are. Throws
  /// Error{kUsage} naming the archive for damaged ones.
  explicit WordNumbering(Archive& archive);

  /// What stands before the document's next paragraph, with the blank after it: "2.1. ", "b) ",
  /// "- " for all bullets; empty where nothing does.
  std::string next_label(const WordParagraph& paragraph);

 private:
  static constexpr size_t kLevels = 9;

  using Level = WordListLevel;
  /// The layout of a list (<w:abstractNum>), and how far it has been counted.
  struct Layout {
    std::array<Level, kLevels> levels;
    std::array<std::optional<int64_t>, kLevels> counts;
    std::string style;     ///< the style that is this list, where one is
    bool is_link = false;  ///< the levels are those of the layout that is the style
  };
  /// A list (<w:num>): a layout with changes. Lists with one layout go on with its numbers.
  struct List {
    std::string layout;
    std::array<std::optional<Level>, kLevels> levels;
    std::array<std::optional<int64_t>, kLevels> starts;  ///< where its own numbers begin
    std::array<bool, kLevels> is_begun = {};
  };
  struct Style {
    std::string base;
    std::optional<int64_t> list, level;
  };
  class NumberingReader;

  void read_styles(Archive& archive);
  /// The style and those it is based on, nearest first.
  template <typename Visit>
  void visit_styles(const std::string& style, const Visit& visit) const;
  void follow_links();
  static const Level& level_at(const List& list, const Layout& layout, size_t level);
  static int64_t start_at(const List& list, const Layout& layout, size_t level);
  std::optional<size_t> level_of(const WordParagraph& paragraph, const List& list,
                                 const Layout& layout) const;
  static void count(List& list, Layout& layout, size_t level);

  std::map<std::string, Layout> layouts_;  // by their ids
  std::map<int64_t, List> lists_;
  std::map<std::string, Style> styles_;
  std::string default_style_;
};

}  // namespace snapkv::documents
