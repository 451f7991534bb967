// SPDX-License-Identifier: MIT
#include "documents/word_numbering.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "base/error.h"
#include "base/parse_number.h"

namespace snapkv::documents {
namespace {

constexpr const char* kNumberingPart = "word/numbering.xml";
constexpr const char* kStylesPart = "word/styles.xml";
/// Word's largest number of a list, and its longest text around numbers in bytes.
constexpr int64_t kMostNumber = 32767;
constexpr size_t kMostLabelText = 1024;

std::optional<int64_t> whole_value(const XmlEvent& event, const char* key = "val") {
  const std::optional<int64_t> number = parse_whole(event.attribute(key).value_or(""));
  constexpr int64_t kMost = INT32_MAX;  // no document can count on to an overflow
  return number && *number >= -kMost && *number <= kMost ? number : std::nullopt;
}

/// A switch: on where it stands without a value.
bool is_on(const XmlEvent& event) {
  const std::string value = event.attribute("val").value_or("1");
  return value != "0" && value != "false" && value != "off";
}

/// a, b, ... z, aa, bb, ...
std::string letters(int64_t number, char first) {
  constexpr int64_t kMost = 780;  // Word's letters, 30 of them, begin anew after it
  const int64_t place = (number - 1) % kMost;
  return std::string(static_cast<size_t>(place / 26 + 1), static_cast<char>(first + place % 26));
}

std::string roman(int64_t number, bool is_upper) {
  constexpr std::pair<int64_t, const char*> kSigns[] = {
      {1000, "m"}, {900, "cm"}, {500, "d"}, {400, "cd"}, {100, "c"}, {90, "xc"}, {50, "l"},
      {40, "xl"},  {10, "x"},   {9, "ix"},  {5, "v"},    {4, "iv"},  {1, "i"}};
  std::string text;
  for (const auto& [value, sign] : kSigns) {
    for (; number >= value; number -= value) text += sign;
  }
  if (!is_upper) return text;
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string ordinal(int64_t number) {
  const int64_t last = number % 10;
  const bool is_teen = number / 10 % 10 == 1;
  const char* const ending = is_teen || last == 0 || last > 3 ? "th"
                             : last == 1                      ? "st"
                             : last == 2                      ? "nd"
                                                              : "rd";
  return fmt::format("{}{}", number, ending);
}

/// Formats of other scripts and of words (chineseCounting, cardinalText) come as decimal numbers.
std::string number_text(int64_t number, const std::string& format, size_t width) {
  if (format == "none" || format == "bullet") return "";
  const bool fits = number >= 1 && number <= kMostNumber;
  if (fits && format == "lowerLetter") return letters(number, 'a');
  if (fits && format == "upperLetter") return letters(number, 'A');
  if (fits && format == "lowerRoman") return roman(number, false);
  if (fits && format == "upperRoman") return roman(number, true);
  if (fits && format == "ordinal") return ordinal(number);
  return fmt::format("{:0{}}", number, format == "decimalZero" ? 2 : width);
}

}  // namespace

/// Reads word/numbering.xml, element by element.
class WordNumbering::NumberingReader {
 public:
  NumberingReader(WordNumbering& numbering, std::string where)
      : numbering_(numbering), where_(std::move(where)) {}

  void visit(const XmlEvent& event) {
    if (event.name == "Fallback") {  // repeats a format for programs that know less
      n_skipped_ += event.type == XmlEvent::Type::begin ? 1 : -1;
    }
    if (n_skipped_ > 0) return;
    if (event.type == XmlEvent::Type::begin) begin(event);
    if (event.type == XmlEvent::Type::end) end(event.name);
  }

 private:
  void begin(const XmlEvent& event) {
    const std::string_view name = event.name;
    if (name == "abstractNum") {
      layout_ = &numbering_.layouts_[event.attribute("abstractNumId").value_or("")];
    } else if (name == "num") {
      list_ = &numbering_.lists_[whole_value(event, "numId").value_or(0)];
    } else if (name == "abstractNumId" && list_ != nullptr) {
      list_->layout = event.attribute("val").value_or("");
    } else if ((name == "styleLink" || name == "numStyleLink") && layout_ != nullptr) {
      layout_->style = event.attribute("val").value_or("");
      layout_->is_link = name == "numStyleLink";
    } else if (name == "lvlOverride" && list_ != nullptr) {
      changed_ = index(event);
    } else if (name == "startOverride" && changed_) {
      list_->starts[*changed_] = whole_value(event);
    } else if (name == "lvl") {
      begin_level(event);
    } else if (level_ != nullptr) {
      read_property(event);
    }
  }
  void end(std::string_view name) {
    if (name == "abstractNum") layout_ = nullptr;
    if (name == "num") list_ = nullptr;
    if (name == "lvlOverride" || name == "num") changed_.reset();
    if (name == "lvl") level_ = nullptr;
  }
  static std::optional<size_t> index(const XmlEvent& event) {
    const int64_t level = whole_value(event, "ilvl").value_or(-1);
    if (level < 0 || level >= static_cast<int64_t>(kLevels)) return std::nullopt;
    return static_cast<size_t>(level);
  }
  void begin_level(const XmlEvent& event) {
    level_ = nullptr;
    if (changed_) level_ = &list_->levels[*changed_].emplace();
    const std::optional<size_t> at = index(event);
    if (layout_ != nullptr && at) level_ = &layout_->levels[*at];
  }
  void read_property(const XmlEvent& event) {
    const std::string_view name = event.name;
    if (name == "start") level_->start = whole_value(event).value_or(0);
    if (name == "numFmt") read_format(event);
    if (name == "lvlRestart") level_->restart = whole_value(event);
    if (name == "pStyle") level_->style = event.attribute("val").value_or("");
    if (name == "isLgl") level_->is_legal = is_on(event);
    if (name == "suff") level_->has_blank = event.attribute("val").value_or("") != "nothing";
    if (name != "lvlText") return;
    level_->text = event.attribute("val").value_or("");
    if (level_->text.size() <= kMostLabelText) return;
    fail(ErrorCode::kUsage, "{}: a list's number has a text of {} bytes; the most is {}", where_,
         level_->text.size(), kMostLabelText);
  }
  void read_format(const XmlEvent& event) {
    level_->format = event.attribute("val").value_or("");
    if (level_->format != "custom") return;  // an example follows: "001, 002, 003, ..."
    const std::string example = event.attribute("format").value_or("");
    const size_t n_digits = std::min(example.find_first_not_of("0123456789"), example.size());
    level_->width = std::min<size_t>(n_digits, 9);
  }

  WordNumbering& numbering_;
  std::string where_;
  int n_skipped_ = 0;
  Layout* layout_ = nullptr;
  List* list_ = nullptr;
  std::optional<size_t> changed_;  // the level that the list changes
  Level* level_ = nullptr;
};

WordNumbering::WordNumbering(Archive& archive) {
  if (!archive.has(kNumberingPart)) return;
  NumberingReader reader(*this, fmt::format("{}: {} in it", archive.name(), kNumberingPart));
  read_xml_part(archive, kNumberingPart, [&](const XmlEvent& event) { reader.visit(event); });
  follow_links();
  if (archive.has(kStylesPart)) read_styles(archive);
}

/// Lists whose layout is a link get the layout that it means.
void WordNumbering::follow_links() {
  std::map<std::string, std::string> layout_of_style;
  for (const auto& [id, layout] : layouts_) {
    if (!layout.is_link && !layout.style.empty()) layout_of_style.emplace(layout.style, id);
  }
  for (auto& [id, list] : lists_) {
    const auto layout = layouts_.find(list.layout);
    if (layout == layouts_.end() || !layout->second.is_link) continue;
    const auto found = layout_of_style.find(layout->second.style);
    if (found != layout_of_style.end()) list.layout = found->second;
  }
}

void WordNumbering::read_styles(Archive& archive) {
  Style* style = nullptr;
  read_xml_part(archive, kStylesPart, [&](const XmlEvent& event) {
    const std::string_view name = event.name;
    if (name == "style") style = nullptr;
    if (event.type != XmlEvent::Type::begin) return;
    if (name == "style") {
      const std::string id = event.attribute("styleId").value_or("");
      style = &styles_[id];
      const std::string is_default = event.attribute("default").value_or("0");
      const bool is_paragraph = event.attribute("type").value_or("") == "paragraph";
      if (is_paragraph && (is_default == "1" || is_default == "true")) default_style_ = id;
    }
    if (style == nullptr) return;
    if (name == "basedOn") style->base = event.attribute("val").value_or("");
    if (name == "numId") style->list = whole_value(event);
    if (name == "ilvl") style->level = whole_value(event);
  });
}

template <typename Visit>
void WordNumbering::visit_styles(const std::string& style, const Visit& visit) const {
  constexpr int kMostBases = 20;  // Word allows 11; a damaged file may have a circle of them
  auto found = styles_.find(style.empty() ? default_style_ : style);
  for (int i = 0; i < kMostBases && found != styles_.end(); ++i) {
    visit(found->first, found->second);
    found = styles_.find(found->second.base);
  }
}

const WordNumbering::Level& WordNumbering::level_at(const List& list, const Layout& layout,
                                                    size_t level) {
  return list.levels[level] ? *list.levels[level] : layout.levels[level];
}

int64_t WordNumbering::start_at(const List& list, const Layout& layout, size_t level) {
  return list.starts[level].value_or(level_at(list, layout, level).start);
}

/// A paragraph's own level; else that which names its style, or one that it is based on.
std::optional<size_t> WordNumbering::level_of(const WordParagraph& paragraph, const List& list,
                                              const Layout& layout) const {
  std::optional<int64_t> level = paragraph.level;
  std::optional<int64_t> of_style;
  visit_styles(paragraph.style, [&](const std::string& id, const Style& style) {
    for (size_t i = 0; i < kLevels && !level; ++i) {
      if (level_at(list, layout, i).style == id) level = static_cast<int64_t>(i);
    }
    if (!of_style) of_style = style.level;
  });
  const int64_t chosen = level ? *level : of_style.value_or(0);
  if (chosen < 0 || chosen >= static_cast<int64_t>(kLevels)) return std::nullopt;
  return static_cast<size_t>(chosen);
}

void WordNumbering::count(List& list, Layout& layout, size_t level) {
  for (size_t i = 0; i < level; ++i) {  // levels that were left out
    if (!layout.counts[i]) layout.counts[i] = start_at(list, layout, i);
  }
  std::optional<int64_t>& number = layout.counts[level];
  const bool begins = list.starts[level] && !list.is_begun[level];
  list.is_begun[level] = true;
  number = number && !begins ? *number + 1 : start_at(list, layout, level);
  for (size_t i = level + 1; i < kLevels; ++i) {
    const std::optional<int64_t> restart = level_at(list, layout, i).restart;
    if (!restart || static_cast<int64_t>(level) < *restart) layout.counts[i].reset();
  }
}

std::string WordNumbering::next_label(const WordParagraph& paragraph) {
  std::optional<int64_t> id = paragraph.list;
  visit_styles(paragraph.style, [&](const std::string&, const Style& style) {
    if (!id) id = style.list;
  });
  const auto found = id && *id > 0 ? lists_.find(*id) : lists_.end();
  if (found == lists_.end()) return "";
  List& list = found->second;
  const auto found_layout = layouts_.find(list.layout);
  if (found_layout == layouts_.end()) return "";
  Layout& layout = found_layout->second;
  const std::optional<size_t> at = level_of(paragraph, list, layout);
  if (!at) return "";
  count(list, layout, *at);
  const Level& level = level_at(list, layout, *at);
  if (level.format == "bullet") return level.text.empty() ? "" : "- ";
  std::string label;
  for (size_t i = 0; i < level.text.size(); ++i) {
    const size_t shown =
        i + 1 < level.text.size() ? static_cast<size_t>(level.text[i + 1]) - '1' : kLevels;
    if (level.text[i] != '%' || shown >= kLevels) {
      label += level.text[i];
      continue;
    }
    ++i;
    const Level& other = level_at(list, layout, shown);
    const int64_t number = layout.counts[shown].value_or(start_at(list, layout, shown));
    label +=
        level.is_legal ? fmt::format("{}", number) : number_text(number, other.format, other.width);
  }
  return label.empty() || !level.has_blank ? label : label + " ";
}

}  // namespace snapkv::documents
