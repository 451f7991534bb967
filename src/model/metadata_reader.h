// SPDX-License-Identifier: MIT
// MetadataReader: reads the keys of one architecture ("llama.block_count") and checks their ranges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

class GgufFile;

/// Every method takes a key without the architecture's name ("block_count") and throws
/// Error{kBadModel} naming file, key, expected and actual value.
class MetadataReader {
 public:
  explicit MetadataReader(const GgufFile& file);

  const GgufFile& file() const { return file_; }
  const std::string& architecture() const { return architecture_; }
  /// "llama.block_count"
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
  bool has(std::string_view name) const;

  /// An integer from 1 to max.
  int64_t size(std::string_view name, int64_t max) const;
  int64_t size(std::string_view name, int64_t otherwise, int64_t max) const;
  /// An integer from `least` to max for each of n layers: one for all of them, or an array, which
  /// may also have entries for the layers that guess further tokens; `otherwise` where the key is
  /// missing, unless that is empty.
  std::vector<int64_t> sizes(std::string_view name, int64_t n,
                             const std::vector<int64_t>& otherwise, int64_t least,
                             int64_t max) const;
  /// Greater than 0 and finite, also after rounding to f32, the type that the kernels compute with.
  double positive(std::string_view name) const;
  double positive(std::string_view name, double otherwise) const;
  /// 0, or a positive number that f32 represents as neither 0 nor infinity.
  double not_negative(std::string_view name, double otherwise) const;
  /// The cap of scores or logits: 0 for no cap, or 1e-30 to 1e30, so that neither the cap's inverse
  /// nor its product with log2(e) leaves the range of f32.
  float softcap(std::string_view name, double otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;

 private:
  int64_t checked(std::string_view name, uint64_t v, int64_t max, int64_t least = 1) const;

  const GgufFile& file_;
  std::string architecture_;
};

}  // namespace snapkv
