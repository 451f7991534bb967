// SPDX-License-Identifier: MIT
// GgufHeader and OutputFile: write a GGUF v3 file of any size piece by piece.
#pragma once

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace snapkv {

static_assert(std::endian::native == std::endian::little, "GGUF files are written as memory lies");

inline constexpr int64_t kGgufAlignment = 32;  // of tensor data, the format's default

inline int64_t padded(int64_t bytes) {
  return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

/// The part of a GGUF file before its tensor data, in memory.
class GgufHeader {
 public:
  template <typename T>
  void number(T v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void string(std::string_view s) {
    number(static_cast<uint64_t>(s.size()));
    bytes_.append(s);
  }
  void u32(std::string_view key, int64_t v) {
    begin(key, 4);
    number(static_cast<uint32_t>(v));
  }
  void f32(std::string_view key, double v) {
    begin(key, 6);
    number(static_cast<float>(v));
  }
  void boolean(std::string_view key, bool v) {
    begin(key, 7);
    number(static_cast<uint8_t>(v));
  }
  void text(std::string_view key, std::string_view v) {
    begin(key, 8);
    string(v);
  }
  template <typename T>
  void array(std::string_view key, uint32_t type, const std::vector<T>& values) {
    begin(key, 9);
    number(type);
    number(static_cast<uint64_t>(values.size()));
    for (const T& v : values) {
      if constexpr (std::is_same_v<T, std::string>)
        string(v);
      else
        number(v);
    }
  }
  /// The whole header: GGUF's first 24 bytes, the collected keys and `tensors`, then padding.
  std::string finish(size_t n_tensors, const GgufHeader& tensors) const {
    GgufHeader file;
    file.bytes_ = "GGUF";
    file.number(uint32_t{3});
    file.number(static_cast<uint64_t>(n_tensors));
    file.number(n_keys_);
    file.bytes_ += bytes_ + tensors.bytes_;
    file.bytes_.resize(static_cast<size_t>(padded(static_cast<int64_t>(file.bytes_.size()))));
    return std::move(file.bytes_);
  }

 private:
  void begin(std::string_view key, uint32_t type) {
    string(key);
    number(type);
    ++n_keys_;
  }
  std::string bytes_;
  uint64_t n_keys_ = 0;
};

/// An output file that is removed unless it is completed.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (file_ == nullptr) fail_with_errno();
  }
  ~OutputFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    remove_regular();
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, int64_t bytes) {
    const auto n = static_cast<size_t>(bytes);
    if (std::fwrite(data, 1, n, file_) != n) fail_with_errno();
  }
  void pad(int64_t written) {
    static constexpr char kZeros[kGgufAlignment] = {};
    write(kZeros, padded(written) - written);
  }
  void close() {
    if (std::fflush(file_) != 0) fail_with_errno();
    if (std::fclose(std::exchange(file_, nullptr)) != 0) {
      const int error = errno;
      remove_regular();
      errno = error;
      fail_with_errno();
    }
  }

 private:
  /// Removes the file, unless it is a device (such as /dev/full).
  void remove_regular() const {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path_, ignored)) std::filesystem::remove(path_, ignored);
  }
  [[noreturn]] void fail_with_errno() const {
    fail(ErrorCode::kRuntime, "{}: can't write: {}", path_, std::strerror(errno));
  }
  std::string path_;
  std::FILE* file_;
};

}  // namespace snapkv
