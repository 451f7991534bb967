// SPDX-License-Identifier: MIT
// Text: a string of the template language. It is immutable UTF-8, counted in characters (Unicode
// code points) as in Python. It records which of its bytes came from the conversation: these must
// never become control tokens, however they travelled through the template. TextBuilder makes
// texts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "snapkv/chat.h"
#include "text/jinja/budget.h"

namespace snapkv::jinja {

class Text;
using TextPtr = std::shared_ptr<const Text>;

class Text {
 public:
  /// `bytes` must be valid UTF-8; `input` must be sorted, disjoint ranges of it.
  explicit Text(std::string bytes, std::vector<ByteRange> input = {}, bool markup = false);

  const std::string& bytes() const { return bytes_; }
  /// The bytes that came from the conversation.
  const std::vector<ByteRange>& input() const { return input_; }
  /// Whether any of the bytes [begin, end) came from the conversation.
  bool has_input(size_t begin, size_t end) const;
  /// Whether this is a result of `safe` or `escape`; text that is added to it gets escaped.
  bool markup() const { return markup_; }

  int64_t size() const { return size_; }
  bool empty() const { return bytes_.empty(); }
  /// The byte at which character `index` begins; `index` may be size().
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

  /// Appends text of the template itself.
  void append(std::string_view bytes) { append_as(bytes, false); }
  void append(const Text& text) { append(text, 0, text.bytes().size()); }
  /// Bytes [begin, end) of `text`.
  void append(const Text& text, size_t begin, size_t end);
  void append_as(std::string_view bytes, bool input);
  void append_char(int32_t codepoint, bool input);

  size_t n_bytes() const { return bytes_.size(); }
  TextPtr finish(bool markup = false);
  /// The result of the whole rendering.
  RenderedChat finish_chat();

 private:
  void mark(size_t begin, size_t end);

  Budget* budget_;
  std::string bytes_;
  std::vector<ByteRange> input_;
};

/// Bytes [begin, end) of a text, with their marks.
TextPtr substring(Budget& budget, const Text& text, size_t begin, size_t end);
TextPtr with_markup(const TextPtr& text, bool markup);

// ---------------------------------------------------------------- UTF-8

/// The length in bytes of a character that begins with `first`, in valid UTF-8.
inline size_t char_bytes(char first) { return utf8::length_by_lead(first); }
/// The character at byte `at` of valid UTF-8.
inline int32_t decode_char(std::string_view bytes, size_t at) {
  return static_cast<int32_t>(utf8::code_point(&bytes[at], utf8::length_by_lead(bytes[at])));
}

}  // namespace snapkv::jinja
