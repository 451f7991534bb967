// SPDX-License-Identifier: MIT
#include "documents/word.h"

#include <fmt/core.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parse_number.h"
#include "documents/archive.h"
#include "documents/text_builder.h"
#include "documents/word_numbering.h"

namespace snapkv::documents {
namespace {

/// A foot- or endnote: the name of its element, and its id.
using NoteKey = std::pair<std::string, std::string>;

/// The paragraphs of word/document.xml: <w:p> of runs with <w:t>, in tables in cells of rows. Where
/// a note belongs stands its number: "[1]".
class WordText {
 public:
  /// `numbering` must outlive it.
  explicit WordText(WordNumbering& numbering) : numbering_(&numbering) {}

  void visit(const XmlEvent& event) {
    if (event.type == XmlEvent::Type::begin) begin(event);
    if (event.type == XmlEvent::Type::end) end(event.name);
    if (event.type == XmlEvent::Type::text && n_text_ > 0 && is_shown()) add(event.text);
  }
  size_t size() const { return text_.size(); }
  std::string take() { return text_.take(); }
  /// In the order of their numbers.
  const std::vector<NoteKey>& notes() const { return notes_; }

 private:
  struct Paragraph {
    WordParagraph properties = {};
    bool is_deleted = false;  // as a change that is tracked
    bool is_numbered = false;
    std::string label = {};  // not yet written
  };

  /// Properties, and what repeats the text for programs that know less.
  static bool is_skipped(std::string_view name) { return name == "pPr" || name == "Fallback"; }
  bool is_shown() const { return n_skipped_ == 0 && !is_hidden_; }
  void begin(const XmlEvent& event) {
    const std::string_view name = event.name;
    if (name == "t") ++n_text_;
    if (name == "p") paragraphs_.emplace_back();
    if (is_skipped(name)) ++n_skipped_;
    if (n_skipped_ == 1 && !paragraphs_.empty()) read_property(event, paragraphs_.back());
    if (name == "tc") ++n_cells_;
    if (name == "r") is_hidden_ = false;
    if (name == "vanish" && n_skipped_ == 0) {
      const std::string value = event.attribute("val").value_or("1");
      is_hidden_ = value != "0" && value != "false" && value != "off";
    }
    if ((name == "footnoteReference" || name == "endnoteReference") && is_shown()) {
      const std::string_view kind = name.substr(0, name.find('R'));
      const NoteKey key(kind, event.attribute("id").value_or(""));
      const auto [number, is_new] = numbers_.emplace(key, notes_.size() + 1);
      if (is_new) notes_.push_back(key);  // each once, so that the text stays as short as the file
      add(fmt::format("[{}]", number->second));
    }
  }
  /// What is in a paragraph's <w:pPr>, and not in what that was before a change.
  static void read_property(const XmlEvent& event, Paragraph& paragraph) {
    const auto number = [&] { return parse_whole(event.attribute("val").value_or("")); };
    if (event.name == "pStyle") paragraph.properties.style = event.attribute("val").value_or("");
    if (event.name == "numId") paragraph.properties.list = number();
    if (event.name == "ilvl") paragraph.properties.level = number();
    if (event.name == "del") paragraph.is_deleted = true;
  }
  /// Counts the paragraph in its list. Its number is written before its first text, if any comes.
  void number_paragraph() {
    if (paragraphs_.empty() || paragraphs_.back().is_numbered) return;
    Paragraph& paragraph = paragraphs_.back();
    paragraph.is_numbered = true;
    if (!paragraph.is_deleted) paragraph.label = numbering_->next_label(paragraph.properties);
  }
  void add(std::string_view text) {
    number_paragraph();
    if (!paragraphs_.empty()) text_.add_as_is(std::exchange(paragraphs_.back().label, {}));
    text_.add_as_is(text);
  }
  void end(std::string_view name) {
    if (name == "t") --n_text_;
    if (is_skipped(name)) --n_skipped_;
    if (name == "r") is_hidden_ = false;
    if (name == "tc") --n_cells_;
    if ((name == "pPr" || name == "p") && n_skipped_ == 0) number_paragraph();
    if (name == "p") paragraphs_.pop_back();
    if (!is_shown()) return;
    if (name == "tab") add("\t");
    if (name == "br" || name == "cr") text_.end_line(1);
    if (name == "noBreakHyphen") add("-");
    if (name == "p" && n_cells_ == 0) text_.end_line(2);
    if (name == "p" && n_cells_ > 0) text_.add(" ");
    if (name == "tr") text_.end_line(1);
    if (name == "tbl") text_.end_line(2);
    if (name == "tc") text_.end_cell();
  }

  TextBuilder text_;
  WordNumbering* numbering_;
  std::vector<Paragraph> paragraphs_;  // those around: a text box has paragraphs in one
  std::vector<NoteKey> notes_;
  std::map<NoteKey, size_t> numbers_;
  int n_text_ = 0, n_skipped_ = 0, n_cells_ = 0;
  bool is_hidden_ = false;  // the run is
};

/// Throws where the text has become too long.
using SizeCheck = std::function<void(size_t)>;

/// The texts of the notes in a part of the archive, "word/footnotes.xml".
void read_notes(Archive& archive, const std::string& file, WordNumbering& numbering,
                const SizeCheck& check, std::map<NoteKey, std::string>& notes) {
  WordText text(numbering);
  size_t n_notes = 0;  // bytes of those that are read
  NoteKey key;
  read_xml_part(archive, file, [&](const XmlEvent& event) {
    const bool is_note = event.name == "footnote" || event.name == "endnote";
    if (event.type == XmlEvent::Type::begin && is_note) {
      key = {std::string(event.name), event.attribute("id").value_or("")};
      text = WordText(numbering);
    }
    text.visit(event);
    check(n_notes + text.size());
    if (event.type != XmlEvent::Type::end || !is_note) return;
    n_notes += text.size();
    notes[key] = text.take();
  });
}

}  // namespace

std::string word_text(Archive& archive, const std::string& file, const ReadLimits& limits) {
  size_t n_before = 0;
  const SizeCheck check = [&](size_t n_bytes) {  // numbers may be longer than what is in the file
    if (n_before + n_bytes <= limits.most_text_bytes) return;
    fail(ErrorCode::kUsage, "{}: more than {} bytes of text", archive.name(),
         limits.most_text_bytes);
  };
  WordNumbering numbering(archive);
  WordText body(numbering);
  read_xml_part(archive, file, [&](const XmlEvent& event) {
    body.visit(event);
    check(body.size());
  });
  std::string text = body.take();
  if (body.notes().empty()) return text;
  std::map<NoteKey, std::string> notes;
  for (const std::string& part : archive.files()) {
    const bool has_notes = part.starts_with("word/footnotes") || part.starts_with("word/endnotes");
    if (!has_notes || !part.ends_with(".xml")) continue;
    n_before = text.size();
    read_notes(archive, part, numbering, check, notes);
  }
  for (size_t i = 0; i < body.notes().size(); ++i) {
    const std::string& note = notes[body.notes()[i]];
    if (!note.empty()) text += fmt::format("\n[{}] {}", i + 1, note);
  }
  return text;
}

}  // namespace snapkv::documents
