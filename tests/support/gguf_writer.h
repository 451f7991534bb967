// SPDX-License-Identifier: MIT
// GgufWriter: writes small GGUF files for tests: typed metadata, tensors of any type from raw
// bytes, as one file or split. It checks nothing, so that it can write broken files too.
// ByteWriter, on which it is built, writes whatever a test wants byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "format/gguf.h"
#include "snapkv/dtype.h"

namespace snapkv::test {

/// Little-endian bytes, one value after another.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  ByteWriter& put_bytes(std::span<const std::byte> bytes);
  /// Writes a u64 length, then the text.
  ByteWriter& put_string(std::string_view text);
  /// Appends zeros up to a multiple of `alignment`.
  ByteWriter& pad(size_t alignment);
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class GgufWriter {
 public:
  /// An alignment other than 32 is written to `general.alignment`.
  explicit GgufWriter(uint32_t version = 3, uint32_t alignment = 32);

  /// Adds a number, bool or string; the value's C++ type determines the type in the file.
  template <typename T>
  GgufWriter& add(std::string_view key, T value) {
    ByteWriter w;
    w.put(static_cast<uint32_t>(type_of<T>())).put(value);
    return add_entry(key, w);
  }
  GgufWriter& add(std::string_view key, std::string_view value);
  GgufWriter& add(std::string_view key, const std::string& value);
  GgufWriter& add(std::string_view key, const char* value);
  /// Adds an array of numbers or bools.
  template <typename T>
  GgufWriter& add(std::string_view key, const std::vector<T>& values) {
    ByteWriter w;
    w.put(static_cast<uint32_t>(GgufType::array)).put(static_cast<uint32_t>(type_of<T>()));
    w.put(static_cast<uint64_t>(values.size()));
    for (const T value : values) w.put(value);
    return add_entry(key, w);
  }
  GgufWriter& add(std::string_view key, const std::vector<std::string>& values);

  /// Adds a tensor, shape outermost first; `data` in the file's layout.
  GgufWriter& add_tensor(std::string_view name, DType dtype, std::vector<int64_t> shape,
                         std::span<const std::byte> data);
  GgufWriter& add_f32(std::string_view name, std::vector<int64_t> shape,
                      const std::vector<float>& values);
  /// The same with any of ggml's type numbers.
  GgufWriter& add_raw_tensor(std::string_view name, uint32_t ggml_type, std::vector<int64_t> shape,
                             std::span<const std::byte> data);

  /// The contents of the file.
  std::vector<std::byte> bytes() const;
  void write(const std::string& path) const;
  /// Writes "PREFIX-00001-of-0000N.gguf", ...: metadata in the first, tensors distributed evenly in
  /// order. Returns the paths.
  std::vector<std::string> write_split(const std::string& prefix, int n_parts) const;

 private:
  struct StoredTensor {
    std::string name;
    uint32_t ggml_type;
    std::vector<int64_t> shape;
    std::vector<std::byte> data;
  };
  template <typename T>
  static constexpr GgufType type_of() {
    if constexpr (std::is_same_v<T, bool>) return GgufType::boolean;
    if constexpr (std::is_same_v<T, float>) return GgufType::f32;
    if constexpr (std::is_same_v<T, double>) return GgufType::f64;
    constexpr bool kSigned = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return kSigned ? GgufType::i8 : GgufType::u8;
    if constexpr (sizeof(T) == 2) return kSigned ? GgufType::i16 : GgufType::u16;
    if constexpr (sizeof(T) == 4) return kSigned ? GgufType::i32 : GgufType::u32;
    return kSigned ? GgufType::i64 : GgufType::u64;
  }
  GgufWriter& add_entry(std::string_view key, const ByteWriter& type_and_value);

  uint32_t version_;
  uint32_t alignment_;
  uint64_t n_kv_ = 0;
  ByteWriter metadata_;
  std::vector<StoredTensor> tensors_;
};

/// Writes a file; a failure ends the test program.
void write_bytes(const std::string& path, std::span<const std::byte> bytes);

/// A new empty folder inside the system's temporary folder; it is removed with its contents.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  /// "FOLDER/name"
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace snapkv::test
