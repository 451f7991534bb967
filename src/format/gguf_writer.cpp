// SPDX-License-Identifier: MIT
#include "format/gguf_writer.h"

#include <array>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "format/ggml_types.h"

namespace snapkv {
namespace {

constexpr uint64_t kAlignment = 32;  // the format's default, which needs no key
constexpr uint32_t kVersion = 3;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Collects little-endian values as they lie in memory.
class Bytes {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(std::as_bytes(std::span(&value, 1)));
  }
  void string(std::string_view text) {
    number(uint64_t{text.size()});
    add(std::as_bytes(std::span(text)));
  }
  void pad() { bytes_.resize(aligned(bytes_.size())); }
  std::span<const std::byte> all() const { return bytes_; }

 private:
  void add(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> bytes_;
};

/// Writes a number or bool as the file stores it.
template <typename T>
void put_number(Bytes& out, GgufType type, T value) {
  switch (type) {
    case GgufType::u8:
      return out.number(static_cast<uint8_t>(value));
    case GgufType::i8:
      return out.number(static_cast<int8_t>(value));
    case GgufType::u16:
      return out.number(static_cast<uint16_t>(value));
    case GgufType::i16:
      return out.number(static_cast<int16_t>(value));
    case GgufType::u32:
      return out.number(static_cast<uint32_t>(value));
    case GgufType::i32:
      return out.number(static_cast<int32_t>(value));
    case GgufType::f32:
      return out.number(static_cast<float>(value));
    case GgufType::boolean:
      return out.number(static_cast<uint8_t>(value));
    case GgufType::u64:
      return out.number(static_cast<uint64_t>(value));
    case GgufType::i64:
      return out.number(static_cast<int64_t>(value));
    case GgufType::f64:
      return out.number(static_cast<double>(value));
    case GgufType::string:
    case GgufType::array:
      break;
  }
  SNAPKV_CHECK(false);  // not a number type
}

void put_value(Bytes& out, const GgufValue& value) {
  out.number(static_cast<uint32_t>(value.type));
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          out.string(v);
        } else if constexpr (std::is_arithmetic_v<T>) {
          put_number(out, value.type, v);
        } else {
          out.number(static_cast<uint32_t>(value.element));
          out.number(uint64_t{v.size()});
          for (size_t i = 0; i < v.size(); ++i) {
            if constexpr (std::is_same_v<T, std::vector<std::string>>) {
              out.string(v[i]);
            } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
              out.number(static_cast<uint8_t>(v[i]));
            } else {
              put_number(out, value.element, v[i]);
            }
          }
        }
      },
      value.value);
}

/// Position of keys in the order that suits people and readers: what the file is, its sizes, and
/// last the vocabulary, which is long.
int place_of(std::string_view key) {
  if (key == "general.architecture") return 0;
  if (key.starts_with("general.")) return 1;
  return key.starts_with("tokenizer.") ? 3 : 2;
}

}  // namespace

uint64_t GgufPlan::bytes() const {
  int64_t n_rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) n_rows *= shape[i];
  return n_rows * row_bytes(dtype, shape.back());
}

GgufFileWriter::GgufFileWriter(AtomicFile& file,
                               const std::map<std::string, GgufValue, std::less<>>& metadata,
                               std::vector<GgufPlan> tensors)
    : file_(file), tensors_(std::move(tensors)) {
  Bytes header;
  for (const char c : {'G', 'G', 'U', 'F'}) header.number(c);
  header.number(kVersion);
  header.number(uint64_t{tensors_.size()});
  header.number(uint64_t{metadata.size()});
  for (int place = 0; place <= 3; ++place) {
    for (const auto& [key, value] : metadata) {
      if (place_of(key) != place) continue;
      header.string(key);
      put_value(header, value);
    }
  }
  uint64_t offset = 0;
  for (const GgufPlan& t : tensors_) {
    header.string(t.name);
    header.number(static_cast<uint32_t>(t.shape.size()));
    for (size_t i = t.shape.size(); i > 0; --i) {  // the file has the fastest one first
      header.number(static_cast<uint64_t>(t.shape[i - 1]));
    }
    header.number(dtype_info(t.dtype).ggml_type);
    header.number(offset);
    offset += aligned(t.bytes());
  }
  header.pad();
  file_.write(header.all());
}

void GgufFileWriter::write(std::span<const std::byte> bytes) {
  SNAPKV_CHECK(at_ < tensors_.size() && written_ + bytes.size() <= tensors_[at_].bytes());
  file_.write(bytes);
  written_ += bytes.size();
  if (written_ < tensors_[at_].bytes()) return;
  constexpr std::array<std::byte, kAlignment> kZeros{};
  file_.write(std::span(kZeros).first(aligned(written_) - written_));
  written_ = 0;
  ++at_;
}

}  // namespace snapkv
