// SPDX-License-Identifier: MIT
// The header is read value by value, without building a tree in memory: a hostile header costs time
// and memory in proportion to its length, and nesting that is too deep is refused at once.
#include "huggingface/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "format/byte_reader.h"

namespace snapkv::huggingface {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;

constexpr SafetensorsType kTypes[] = {
    {"F32", 32, DType::f32}, {"F16", 16, DType::f16}, {"BF16", 16, DType::bf16},
    {"F64", 64, {}},         {"C64", 64, {}},         {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},      {"F8_E8M0", 8, {}},      {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},      {"F4", 4, {}},           {"BOOL", 8, {}},
    {"U8", 8, {}},           {"I8", 8, {}},           {"U16", 16, {}},
    {"I16", 16, {}},         {"U32", 32, {}},         {"I32", 32, {}},
    {"U64", 64, {}},         {"I64", 64, {}},
};

const SafetensorsType* find_type(std::string_view name) {
  const auto* at = std::find_if(std::begin(kTypes), std::end(kTypes),
                                [&](const SafetensorsType& type) { return type.name == name; });
  return at == std::end(kTypes) ? nullptr : at;
}

/// Takes the values of the header from the JSON library, with one call for each.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  /// The offsets of the entries are offsets in the file; the data begin at `data_begin`.
  HeaderReader(const std::string& label, uint64_t data_begin)
      : label_(label), data_begin_(data_begin) {}

  std::vector<SafetensorsEntry> take() { return std::move(entries_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_integer(int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a broken number"); }
  bool binary(Json::binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kNumbers) unexpected("a number");
    if (numbers_.size() == 64) bad("{} has more than 64 numbers", where());
    numbers_.push_back(value);
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || field_ != "dtype") unexpected("a text");
    entry_.type = find_type(text);
    if (entry_.type == nullptr) {
      bad("{} is '{}', which is not a known type", where(), printable(text));
    }
    return true;
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kNothing:
        place_ = Place::kHeader;
        return true;
      case Place::kHeader:
        place_ = entry_.name == "__metadata__" ? Place::kMetadata : Place::kTensor;
        return true;
      case Place::kMetadata:
      case Place::kTensor:
      case Place::kNumbers:
        break;
    }
    unexpected("an object");
  }

  bool key(std::string& text) override {
    if (place_ == Place::kHeader) {
      entry_ = {};
      entry_.name = std::move(text);
      has_shape_ = has_offsets_ = false;
      return true;
    }
    if (place_ == Place::kMetadata) return true;
    if (text != "dtype" && text != "shape" && text != "data_offsets") {
      bad("tensor '{}' has a field '{}', expected dtype, shape and data_offsets",
          printable(entry_.name), printable(text));
    }
    field_ = text;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      finish_tensor();
      place_ = Place::kHeader;
    } else {
      place_ = place_ == Place::kMetadata ? Place::kHeader : Place::kNothing;
    }
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || field_ == "dtype") unexpected("an array");
    place_ = Place::kNumbers;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    if (field_ == "shape") {
      has_shape_ = true;
      entry_.shape.clear();
      for (const uint64_t n : numbers_) {
        if (!std::in_range<int64_t>(n)) bad("{} holds {}, expected at most 2^63 - 1", where(), n);
        entry_.shape.push_back(n);
      }
      return true;
    }
    if (numbers_.size() != 2) bad("{} has {} numbers, expected 2", where(), numbers_.size());
    has_offsets_ = true;
    entry_.begin = numbers_[0];
    entry_.end = numbers_[1];
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& e) override {
    bad("the header is not valid JSON at its byte {}: {}", position, printable(e.what()));
  }

 private:
  enum class Place { kNothing, kHeader, kMetadata, kTensor, kNumbers };

  template <typename... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::kBadModel, "'{}': {}", label_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  std::string where() const {
    switch (place_) {
      case Place::kNothing:
      case Place::kHeader:
        break;
      case Place::kMetadata:
        return "__metadata__";
      case Place::kTensor:
      case Place::kNumbers:
        return fmt::format("{} of tensor '{}'", field_, printable(entry_.name));
    }
    return entry_.name.empty() ? "the header"
                               : fmt::format("entry '{}' of the header", printable(entry_.name));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    constexpr std::string_view kExpected[] = {"an object", "an object for each tensor",
                                              "texts only", "a text for dtype, else an array",
                                              "numbers of 0 or more"};
    bad("{} holds {}, expected {}", where(), what, kExpected[static_cast<int>(place_)]);
  }

  /// Checks a tensor's size and offsets; the order of the offsets is checked when all are known.
  void finish_tensor() {
    const std::string shown = printable(entry_.name);
    if (entry_.type == nullptr || !has_shape_ || !has_offsets_) {
      bad("tensor '{}' has no {}", shown,
          entry_.type == nullptr ? "dtype"
          : !has_shape_          ? "shape"
                                 : "data_offsets");
    }
    int64_t bits = entry_.type->bits;
    for (const int64_t n : entry_.shape) {
      if (__builtin_mul_overflow(bits, n, &bits)) {
        bad("tensor '{}': the size of its shape overflows", shown);
      }
    }
    if (bits % 8 != 0) bad("tensor '{}': {} bits are not whole bytes", shown, bits);
    if (entry_.begin > entry_.end) {
      bad("tensor '{}': data_offsets are [{}, {}], the second is less", shown, entry_.begin,
          entry_.end);
    }
    if (entry_.end - entry_.begin != static_cast<uint64_t>(bits / 8)) {
      bad("tensor '{}': data_offsets span {} bytes, its shape in {} takes {}", shown,
          entry_.end - entry_.begin, entry_.type->name, bits / 8);
    }
    if (__builtin_add_overflow(entry_.begin, data_begin_, &entry_.begin) ||
        __builtin_add_overflow(entry_.end, data_begin_, &entry_.end)) {
      bad("tensor '{}': data_offsets overflow", shown);
    }
    entries_.push_back(std::move(entry_));
    entry_ = {};
  }

  const std::string& label_;
  const uint64_t data_begin_;
  Place place_ = Place::kNothing;
  SafetensorsEntry entry_;         // the one being read
  std::string field_;              // its current field
  std::vector<uint64_t> numbers_;  // the field's numbers so far
  bool has_shape_ = false, has_offsets_ = false;
  std::vector<SafetensorsEntry> entries_;
};

/// The length of the header's JSON text, checked against the file's size.
uint64_t header_bytes(std::span<const std::byte> file, const std::string& label) {
  ByteReader reader(file, label);
  const auto n = reader.read<uint64_t>("length of the header");
  if (n > kMaxHeaderBytes) {
    fail(ErrorCode::kBadModel, "'{}': the header has {} bytes, expected at most {}", label, n,
         kMaxHeaderBytes);
  }
  reader.check_count(n, 1, "length of the header");
  if (n == 0 || file[8] != std::byte{'{'}) {
    fail(ErrorCode::kBadModel, "'{}': not a safetensors file: the header does not begin with '{{'",
         label);
  }
  return n;
}

/// Sorts entries by the place of their data, and checks that these cover [begin, end) of the file
/// exactly once.
void check_order(std::vector<SafetensorsEntry>& entries, uint64_t begin, uint64_t end,
                 const std::string& label) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = begin;
  for (const SafetensorsEntry& e : entries) {
    if (e.begin != at) {
      fail(ErrorCode::kBadModel, "'{}': the data of tensor '{}' begin at offset {}, {} {}", label,
           printable(e.name), e.begin - begin,
           e.begin < at ? "inside of another tensor's, which end at" : "after a gap from",
           at - begin);
    }
    at = e.end;
  }
  if (at != end) {
    fail(ErrorCode::kBadModel, "'{}': the tensors take {} bytes, the file has {} of data{}", label,
         at - begin, end - begin, at > end ? "; it is truncated" : "");
  }
}

void check_names(const std::vector<SafetensorsEntry>& entries, const std::string& label) {
  std::vector<std::string_view> names;
  for (const SafetensorsEntry& e : entries) names.push_back(e.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    fail(ErrorCode::kBadModel, "'{}': tensor '{}' occurs twice", label, printable(*twice));
  }
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file,
                                                const std::string& label) {
  const uint64_t n = header_bytes(file, label);
  const auto* text = reinterpret_cast<const char*>(file.data()) + 8;
  HeaderReader reader(label, 8 + n);
  Json::sax_parse(text, text + n, &reader);  // errors are thrown
  std::vector<SafetensorsEntry> entries = reader.take();
  check_names(entries, label);
  check_order(entries, 8 + n, file.size(), label);
  return entries;
}

}  // namespace snapkv::huggingface
