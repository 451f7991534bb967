// SPDX-License-Identifier: MIT
#include "text/piece_cutter.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/json_pattern.h"
#include "text/sentencepiece_space.h"
#include "text/unicode.h"

namespace snapkv {

/// One pre-tokenizer.
class PieceCutter::Step {
 public:
  virtual ~Step() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

namespace {

using Piece = PieceCutter::Piece;
using Pieces = PieceCutter::Pieces;

constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const JsonField& field, Behavior otherwise) {
  if (field.is_null()) return otherwise;
  const std::string& name = field.string();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  field.fail_unsupported("'" + name + "'",
                         "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

/// Takes the stretches of one piece, matches and the text between them, and appends the pieces that
/// they form to a list.
class Cut {
 public:
  Cut(Behavior behavior, bool invert, std::vector<Piece>& out)
      : behavior_(behavior), invert_(invert), out_(out) {}

  void begin(const Piece& piece) {
    piece_ = piece;
    open_begin_ = open_end_ = 0;
    previous_ = false;
    any_ = false;
  }
  /// Adds the next stretch. Stretches come in order and cover the piece.
  void add(size_t begin, size_t end, bool is_match) {
    if (invert_) is_match = !is_match;
    if (behavior_ == Behavior::removed) {
      if (!is_match) put(begin, end);
      return;
    }
    const bool joins = behavior_ == Behavior::contiguous ? any_ && is_match == previous_
                       : behavior_ == Behavior::merged_with_previous
                           ? any_ && is_match && !previous_
                       : behavior_ == Behavior::merged_with_next ? any_ && previous_ && !is_match
                                                                 : false;
    if (!joins) {
      flush();
      open_begin_ = begin;
    }
    open_end_ = end;
    previous_ = is_match;
    any_ = true;
  }
  void flush() {
    put(open_begin_, open_end_);
    open_begin_ = open_end_;
  }

 private:
  void put(size_t begin, size_t end) {
    if (begin < end) {
      out_.push_back({piece_.text.substr(begin, end - begin), piece_.first && begin == 0});
    }
  }

  Behavior behavior_;
  bool invert_;
  std::vector<Piece>& out_;
  Piece piece_;
  size_t open_begin_ = 0, open_end_ = 0;  // the stretches joined so far
  bool previous_ = false;                 // whether the stretch before is a match
  bool any_ = false;
};

class SplitPattern final : public PieceCutter::Step {
 public:
  SplitPattern(JsonPattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(Pieces& pieces) const override {
    std::vector<Piece> out;
    out.reserve(pieces.list.size());
    Cut cut(behavior_, invert_, out);
    JsonPattern::Scanner scanner(pattern_, {});
    for (const Piece& piece : pieces.list) {
      cut.begin(piece);
      scanner.set_text(piece.text);
      size_t done = 0;
      while (const auto match = scanner.next()) {
        if (match->begin > done) cut.add(done, match->begin, false);
        cut.add(match->begin, match->end, true);
        done = match->end;
      }
      if (done < piece.text.size()) cut.add(done, piece.text.size(), false);
      cut.flush();
    }
    pieces.list = std::move(out);
  }

 private:
  JsonPattern pattern_;
  Behavior behavior_;
  bool invert_;
};

/// Cuts at the characters for which a function returns true.
class SplitCharacters final : public PieceCutter::Step {
 public:
  SplitCharacters(bool (*matches)(uint32_t), Behavior behavior)
      : matches_(matches), behavior_(behavior) {}

  void apply(Pieces& pieces) const override {
    std::vector<Piece> out;
    out.reserve(pieces.list.size());
    Cut cut(behavior_, false, out);
    for (const Piece& piece : pieces.list) {
      cut.begin(piece);
      size_t done = 0;
      for (size_t at = 0; at < piece.text.size();) {
        const size_t n = utf8::length_by_lead(piece.text[at]);
        const size_t next = at + n;
        if (matches_(utf8::code_point(piece.text.data() + at, n))) {
          if (at > done) cut.add(done, at, false);
          cut.add(at, next, true);
          done = next;
        }
        at = next;
      }
      if (done < piece.text.size()) cut.add(done, piece.text.size(), false);
      cut.flush();
    }
    pieces.list = std::move(out);
  }

 private:
  bool (*matches_)(uint32_t);
  Behavior behavior_;
};

/// Replaces the text of pieces.
class Rewrite final : public PieceCutter::Step {
 public:
  /// Returns whether the text changed.
  using Function = std::function<bool(const Piece&, std::string&)>;
  explicit Rewrite(Function function) : function_(std::move(function)) {}

  void apply(Pieces& pieces) const override {
    std::string text;
    for (Piece& piece : pieces.list) {
      text.clear();
      if (function_(piece, text)) piece.text = pieces.made.emplace_back(std::move(text));
    }
  }

 private:
  Function function_;
};

std::unique_ptr<PieceCutter::Step> prefix_space() {
  return std::make_unique<Rewrite>([](const Piece& piece, std::string& out) {
    if (piece.text.starts_with(' ')) return false;
    out = " ";
    out += piece.text;
    return true;
  });
}

std::unique_ptr<PieceCutter::Step> spell_bytes() {
  return std::make_unique<Rewrite>([](const Piece& piece, std::string& out) {
    byte_alphabet::append(out, piece.text);
    return true;
  });
}

bool is_number(uint32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : unicode::category(c) == unicode::Category::number;
}

/// "always", "first" or "never"; older files have add_prefix_space instead.
std::string prepend_scheme_of(const JsonField& field) {
  const std::string scheme =
      field["prepend_scheme"].string(field["add_prefix_space"].boolean(true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    field["prepend_scheme"].fail_unsupported("'" + scheme + "'", "always, first, never");
  }
  return scheme;
}

}  // namespace

PieceCutter::PieceCutter() = default;
PieceCutter::PieceCutter(PieceCutter&&) noexcept = default;
PieceCutter::~PieceCutter() = default;

PieceCutter::PieceCutter(const JsonField& field) {
  if (!field.is_null()) add(field);
}

void PieceCutter::add_byte_level(const JsonField& field) {
  if (byte_level_) field["type"].fail_unsupported("a second ByteLevel", "one");
  if (field["add_prefix_space"].boolean(false)) steps_.push_back(prefix_space());
  if (field["use_regex"].boolean(true)) {
    steps_.push_back(std::make_unique<SplitPattern>(JsonPattern(kByteLevelPattern, field.place()),
                                                    Behavior::isolated, false));
  }
  byte_level_ = true;
}

void PieceCutter::add(const JsonField& field) {
  const std::string& type = field["type"].string();
  if (type == "Sequence") {
    for (const JsonField& part : field["pretokenizers"].elements()) add(part);
    return;
  }
  if (byte_level_ && !spelled_) {
    // The steps after ByteLevel read the characters that bytes are spelled with.
    steps_.push_back(spell_bytes());
    spelled_ = true;
  }
  if (type == "ByteLevel") {
    add_byte_level(field);
  } else if (type == "Split") {
    steps_.push_back(std::make_unique<SplitPattern>(
        JsonPattern(field["pattern"]), behavior_of(field["behavior"], Behavior::isolated),
        field["invert"].boolean(false)));
  } else if (type == "Digits") {
    const bool each = field["individual_digits"].boolean(false);
    steps_.push_back(std::make_unique<SplitCharacters>(
        is_number, each ? Behavior::isolated : Behavior::contiguous));
  } else if (type == "Punctuation") {
    steps_.push_back(std::make_unique<SplitCharacters>(
        unicode::is_punctuation, behavior_of(field["behavior"], Behavior::isolated)));
  } else if (type == "WhitespaceSplit") {
    steps_.push_back(std::make_unique<SplitCharacters>(unicode::is_white_space, Behavior::removed));
  } else if (type == "Whitespace") {
    steps_.push_back(std::make_unique<SplitPattern>(JsonPattern(R"(\w+|[^\w\s]+)", field.place()),
                                                    Behavior::removed, true));
  } else if (type == "Metaspace") {
    const std::string mark = field["replacement"].string(kSentencePieceSpace);
    const std::string scheme = prepend_scheme_of(field);
    if (mark.empty()) field["replacement"].fail_expected("a character");
    steps_.push_back(std::make_unique<Rewrite>([mark, scheme](const Piece& p, std::string& out) {
      const bool wanted = scheme == "always" || (scheme == "first" && p.first);
      out = replace_all(p.text, " ", mark);
      if (wanted && !out.starts_with(mark)) out.insert(0, mark);
      return true;
    }));
    if (field["split"].boolean(true)) {
      steps_.push_back(std::make_unique<SplitPattern>(JsonPattern::literal(mark),
                                                      Behavior::merged_with_next, false));
    }
  } else {
    field["type"].fail_unsupported("'" + type + "'",
                                   "ByteLevel, Split, Digits, Punctuation, Whitespace, "
                                   "WhitespaceSplit, Metaspace, Sequence");
  }
}

PieceCutter::Pieces PieceCutter::cut(std::string_view text, bool first) const {
  Pieces pieces;
  if (!text.empty()) pieces.list.push_back({text, first});
  for (const auto& step : steps_) step->apply(pieces);
  if (!spelled_) return pieces;
  for (Piece& piece : pieces.list) {
    auto bytes = byte_alphabet::bytes_of(piece.text);
    SNAPKV_CHECK(bytes.has_value());  // ByteLevel spelled it
    piece.text = pieces.made.emplace_back(std::move(*bytes));
  }
  return pieces;
}

}  // namespace snapkv
