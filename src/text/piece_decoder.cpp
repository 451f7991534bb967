// SPDX-License-Identifier: MIT
#include "text/piece_decoder.h"

#include <limits>

#include "text/byte_alphabet.h"
#include "text/sentencepiece_space.h"

namespace snapkv {

PieceDecoder::PieceDecoder(const JsonField& field) {
  if (field.is_null()) {
    separator_ = " ";
  } else {
    add(field);
  }
}

void PieceDecoder::add_strip(const JsonField& field) {
  if (!fused_) {
    field["type"].fail_unsupported("'Strip' of every token", "Strip after Fuse, of a text");
  }
  strip_ = field["content"].string();
  n_strip_ = field["start"].integer(0);
  if (strip_.empty()) field["content"].fail_expected("a character");
  if (n_strip_ < 0) field["start"].fail_expected("0 or more");
  if (field["stop"].integer(0) != 0) {
    field["stop"].fail_unsupported("stripping the end of a text", "0");
  }
}

void PieceDecoder::add(const JsonField& field) {
  const std::string& type = field["type"].string();
  if (type == "Sequence") {
    for (const JsonField& part : field["decoders"].elements()) add(part);
  } else if (type == "ByteLevel") {
    byte_level_ = true;
  } else if (type == "ByteFallback") {
    byte_tokens_ = true;
  } else if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Strip") {
    add_strip(field);
  } else if (type == "Replace") {
    const JsonField pattern = field["pattern"];
    if (!pattern.has("String")) {
      pattern.fail_unsupported("anything but a text", "{\"String\": ...}");
    }
    const std::string& from = pattern["String"].string();
    if (from.empty()) pattern["String"].fail_expected("a string that is not empty");
    replacements_.emplace_back(from, field["content"].string());
  } else if (type == "Metaspace") {
    const std::string mark = field["replacement"].string(kSentencePieceSpace);
    if (mark.empty()) field["replacement"].fail_expected("a character");
    replacements_.emplace_back(mark, " ");
    const bool prefixed = field["prepend_scheme"].string(field["add_prefix_space"].boolean(true)
                                                             ? "always"
                                                             : "never") != "never";
    strip_ = " ";
    n_strip_ = prefixed ? std::numeric_limits<int32_t>::max() : 0;
  } else {
    field["type"].fail_unsupported(
        "'" + type + "'", "ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, Sequence");
  }
}

std::string PieceDecoder::bytes_of(std::string_view token, bool added) const {
  if (byte_tokens_) {
    if (const auto byte = byte_alphabet::hex_byte(token)) {
      return std::string(1, static_cast<char>(*byte));
    }
  }
  std::string text(token);
  for (const auto& [from, to] : replacements_) text = replace_all(text, from, to);
  if (!byte_level_ || added) return text;
  return byte_alphabet::bytes_of(text).value_or(text);
}

size_t PieceDecoder::stripped(std::string_view piece) const {
  size_t n = 0;
  for (int64_t i = 0; i < n_strip_ && piece.substr(n).starts_with(strip_); ++i) n += strip_.size();
  return n;
}

}  // namespace snapkv
