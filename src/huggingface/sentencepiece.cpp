// SPDX-License-Identifier: MIT
#include "huggingface/sentencepiece.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "format/byte_reader.h"
#include "format/mmap_file.h"

namespace snapkv::huggingface {
namespace {

constexpr size_t kMaxModelBytes = size_t{32} << 20;  // the largest in use have 5 MB

/// The fields of one message, one after another.
class MessageReader {
 public:
  MessageReader(std::span<const std::byte> file, const std::string& label)
      : file_(file), label_(label), end_(file.size()), name_("model") {}

  /// Goes on to the next field; false at the message's end.
  bool next() {
    if (at_ == end_) return false;
    field_at_ = at_;
    const uint64_t key = varint();
    number_ = key >> 3;
    type_ = static_cast<WireType>(key & 7);
    if (number_ == 0 || number_ > kMaxNumber) {
      bad(field_at_, "a field of {} has the number {}, expected 1 to {}", name_, number_,
          kMaxNumber);
    }
    return true;
  }
  uint64_t number() const { return number_; }

  // The current field's value; each field must be read or skipped before the next one.
  int64_t integer(std::string_view field) {
    expect(WireType::kVarint, field);
    return static_cast<int64_t>(varint());
  }
  bool flag(std::string_view field) { return integer(field) != 0; }
  float number(std::string_view field) {
    expect(WireType::kFixed32, field);
    need(sizeof(float));
    float value;
    std::memcpy(&value, file_.data() + at_, sizeof(float));
    at_ += sizeof(float);
    return value;
  }
  std::string_view text(std::string_view field) {
    expect(WireType::kLength, field);
    const uint64_t length = varint();
    need(length);
    const std::string_view value(reinterpret_cast<const char*>(file_.data()) + at_, length);
    at_ += length;
    return value;
  }
  MessageReader message(std::string_view field) {
    const size_t length = text(field).size();
    MessageReader inner = *this;
    inner.end_ = at_;
    inner.at_ = at_ - length;
    inner.name_ = field;
    return inner;
  }
  void skip() {
    switch (type_) {
      case WireType::kVarint:
        varint();
        return;
      case WireType::kFixed64:
        need(8);
        at_ += 8;
        return;
      case WireType::kLength:
        text("");
        return;
      case WireType::kFixed32:
        need(4);
        at_ += 4;
        return;
    }
    bad(field_at_, "field {} of {} has wire type {}, expected 0, 1, 2 or 5", number_, name_,
        static_cast<int>(type_));
  }

  template <typename... Args>
  [[noreturn]] void bad(size_t at, fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::kBadModel, "'{}': byte {}: {}", label_, at,
         fmt::format(format, std::forward<Args>(args)...));
  }
  /// Where the current field begins.
  size_t field_at() const { return field_at_; }

 private:
  enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
  static constexpr uint64_t kMaxNumber = (1 << 29) - 1;

  void expect(WireType type, std::string_view field) const {
    if (type_ == type) return;
    bad(field_at_, "{}.{} has wire type {}, expected {}", name_, field, static_cast<int>(type_),
        static_cast<int>(type));
  }
  void need(uint64_t count) const {
    if (count <= end_ - at_) return;
    bad(at_, "{} needs {} more bytes, but {} are left; it is truncated or damaged", name_, count,
        end_ - at_);
  }
  /// 7 bits a byte, the lowest first; the last byte has its highest bit clear.
  uint64_t varint() {
    const size_t begin = at_;
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      need(1);
      const auto byte = static_cast<uint64_t>(file_[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad(begin, "an integer of {} does not end within 64 bits", name_);
  }

  std::span<const std::byte> file_;
  const std::string& label_;
  size_t at_ = 0;
  size_t end_;             // of the message
  std::string_view name_;  // the message's
  size_t field_at_ = 0;
  uint64_t number_ = 0;
  WireType type_ = WireType::kVarint;
};

SentencePiece read_piece(MessageReader fields) {
  SentencePiece piece;
  const auto begin = fields;
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        piece.text = fields.text("piece");
        break;
      case 2:
        piece.score = fields.number("score");
        if (!std::isfinite(piece.score)) {
          fields.bad(fields.field_at(), "the score of '{}' is {}, expected a number",
                     printable(piece.text), piece.score);
        }
        break;
      case 3:
        piece.type = fields.integer("type");
        if (piece.type < 1 || piece.type > 6) {
          fields.bad(fields.field_at(), "the type of '{}' is {}, expected 1 to 6",
                     printable(piece.text), piece.type);
        }
        break;
      default:
        fields.skip();
    }
  }
  if (piece.text.empty()) begin.bad(begin.field_at(), "a piece has no text");
  return piece;
}

void read_trainer(MessageReader fields, SentencePieceModel& model) {
  while (fields.next()) {
    switch (fields.number()) {
      case 3:
        model.model_type = fields.integer("model_type");
        break;
      case 24:
        model.treat_whitespace_as_suffix = fields.flag("treat_whitespace_as_suffix");
        break;
      case 35:
        model.byte_fallback = fields.flag("byte_fallback");
        break;
      case 41:
        model.bos_id = fields.integer("bos_id");
        break;
      case 42:
        model.eos_id = fields.integer("eos_id");
        break;
      case 43:
        model.pad_id = fields.integer("pad_id");
        break;
      default:
        fields.skip();
    }
  }
}

void read_normalizer(MessageReader fields, PieceNormalizer& normalizer) {
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        normalizer.name = fields.text("name");
        break;
      case 2:
        normalizer.charsmap_bytes = fields.text("precompiled_charsmap").size();
        break;
      case 3:
        normalizer.add_dummy_prefix = fields.flag("add_dummy_prefix");
        break;
      case 4:
        normalizer.remove_extra_whitespaces = fields.flag("remove_extra_whitespaces");
        break;
      case 5:
        normalizer.escape_whitespaces = fields.flag("escape_whitespaces");
        break;
      default:
        fields.skip();
    }
  }
}

void check_size(uint64_t bytes, const std::string& label) {
  if (bytes <= kMaxModelBytes) return;
  fail(ErrorCode::kBadModel, "'{}' has {} bytes, expected at most {}", label, bytes,
       kMaxModelBytes);
}

}  // namespace

SentencePieceModel parse_sentencepiece(std::span<const std::byte> bytes, const std::string& label) {
  check_size(bytes.size(), label);
  SentencePieceModel model;
  model.file = label;
  bool has_trainer = false;
  bool has_normalizer = false;
  MessageReader fields(bytes, label);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        model.pieces.push_back(read_piece(fields.message("pieces")));
        break;
      case 2:
        read_trainer(fields.message("trainer_spec"), model);
        has_trainer = true;
        break;
      case 3:
        read_normalizer(fields.message("normalizer_spec"), model.normalizer);
        has_normalizer = true;
        break;
      case 5:
        read_normalizer(fields.message("denormalizer_spec"), model.denormalizer);
        break;
      default:
        fields.skip();
    }
  }
  if (model.pieces.empty() || !has_trainer || !has_normalizer) {
    fields.bad(bytes.size(), "the file ends without {}; it is truncated, or no SentencePiece model",
               model.pieces.empty() ? "pieces"
               : !has_trainer       ? "trainer_spec"
                                    : "normalizer_spec");
  }
  return model;
}

std::optional<SentencePieceModel> read_sentencepiece_if_there(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (!error) check_size(bytes, path);  // else MmapFile says why it cannot be read
  const MmapFile file(path, FileAccess::copied);
  return parse_sentencepiece(file.bytes(), path);
}

}  // namespace snapkv::huggingface
