// SPDX-License-Identifier: MIT
// Text: a string of the template language. UTF-8, immutable, counted in characters (Unicode code
// points) as Python counts, and it remembers which of its bytes came from the conversation: those
// must never become control tokens, however they travelled through the template. TextBuilder makes
// one. Used by every part of the interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/chat.h"
#include "text/jinja/budget.h"

namespace snapkv::jinja {

class Text;
using TextPtr = std::shared_ptr<const Text>;

class Text {
 public:
  /// `bytes` must be valid UTF-8, `input` sorted, disjoint ranges of it.
  explicit Text(std::string bytes, std::vector<ByteRange> input = {}, bool markup = false);

  const std::string& bytes() const { return bytes_; }
  /// Which bytes came from the conversation.
  const std::vector<ByteRange>& input() const { return input_; }
  /// Whether bytes [begin, end) contain any that came from the conversation.
  bool has_input(size_t begin, size_t end) const;
  /// The result of `safe` or `escape`: what is added to it gets escaped.
  bool markup() const { return markup_; }

  int64_t size() const { return size_; }
  bool empty() const { return bytes_.empty(); }
  /// Byte where character `index` begins; index may be size().
  size_t offset(int64_t index) const;

 private:
  std::string bytes_;
  std::vector<ByteRange> input_;
  int64_t size_;
  bool markup_;
};

TextPtr make_text(std::string bytes);

class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(&budget) {}

  /// The template's own text.
  void append(std::string_view bytes) { append_as(bytes, false); }
  void append(const Text& text) { append(text, 0, text.bytes().size()); }
  /// Bytes [begin, end) of `text`.
  void append(const Text& text, size_t begin, size_t end);
  void append_as(std::string_view bytes, bool input);
  void append_char(int32_t codepoint, bool input);

  size_t n_bytes() const { return bytes_.size(); }
  TextPtr finish(bool markup = false);
  /// For the rendering as a whole.
  RenderedChat finish_chat();

 private:
  void mark(size_t begin, size_t end);

  Budget* budget_;
  std::string bytes_;
  std::vector<ByteRange> input_;
};

/// Bytes [begin, end) of a text, with its marks.
TextPtr substring(Budget& budget, const Text& text, size_t begin, size_t end);
TextPtr with_markup(const TextPtr& text, bool markup);

// ---------------------------------------------------------------- UTF-8

/// Byte of the first sequence that is not UTF-8; npos when all of it is.
size_t find_invalid_utf8(std::string_view bytes);
/// Bytes of the character that begins with this byte of valid UTF-8.
size_t char_bytes(char first);
/// The character at `at` of valid UTF-8.
int32_t decode_char(std::string_view bytes, size_t at);
void encode_char(int32_t codepoint, std::string& out);

}  // namespace snapkv::jinja
