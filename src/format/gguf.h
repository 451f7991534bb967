// SPDX-License-Identifier: MIT
// GgufFile: a model in GGUF v2 or v3, mapped into memory; one file or the parts of a split.
//
// Layout (little endian):
//   "GGUF"  u32 version  u64 n_tensors  u64 n_kv
//   n_kv x    { string key, u32 type, value }            string = u64 length + bytes
//   n_tensors x { string name, u32 n_dims, u64 dims[n_dims], u32 type, u64 offset }
//   padding to general.alignment (default 32), then tensor data; `offset` counts from there
// Dimensions in the file are fastest first; here, as everywhere in the project, outermost first.
// Nothing read is trusted: every offset, count and size is checked against the file's size.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/tensor.h"

namespace snapkv {

/// Value types of the metadata, numbered as in the file.
enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

/// One metadata value. Scalars keep their class (unsigned, signed, float, bool, string); arrays are
/// of one element type and cannot nest deeper than one level.
struct GgufValue {
  GgufType type = GgufType::u32;     // as in the file
  GgufType element = GgufType::u32;  // element type if type == array
  std::variant<uint64_t, int64_t, double, bool, std::string, std::vector<uint64_t>,
               std::vector<int64_t>, std::vector<double>, std::vector<bool>,
               std::vector<std::string>>
      value;
};

/// What the header says of one tensor; `tensor.data` points into the mapping.
struct GgufTensor {
  std::string name;
  Tensor tensor;             // outermost dimension first
  uint64_t file_offset = 0;  // of the data, from the start of its part
  int part = 0;              // which file of a split

  uint64_t bytes() const {
    return static_cast<uint64_t>(tensor.numel() / block_size(tensor.dtype) *
                                 block_bytes(tensor.dtype));
  }
};

class MmapFile;

class GgufFile {
 public:
  /// Maps `path`; when it is part 1 of a split ("...-00001-of-0000N.gguf"), all N parts. Throws
  /// Error{kRuntime} when it can't be read, Error{kBadModel} naming file, field, expected and
  /// actual when it is no valid GGUF.
  static GgufFile open(const std::string& path);
  /// Parses one part from memory, which must outlive the result (tests, fuzzing).
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& label);

  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;
  ~GgufFile();

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  uint64_t file_bytes() const { return file_bytes_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  /// In file order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  /// A hash of the headers and of 192 bytes of each tensor's data: equal for copies of a file,
  /// different after training, as far as samples can tell.
  uint64_t fingerprint() const;
  /// nullptr when absent.
  const GgufTensor* find_tensor(std::string_view name) const;
  /// Hints to the kernel: read a tensor's pages ahead, or drop them from memory (read again on the
  /// next access). Nothing for a file parsed from memory.
  void will_need(const GgufTensor& t) const;
  void dont_need(const GgufTensor& t) const;
  /// MmapFile::move_to_huge_pages() of bytes [offset, offset + length) of a part; 0 for a file
  /// parsed from memory.
  std::optional<size_t> move_to_huge_pages(int part, size_t offset, size_t length);
  bool has(std::string_view key) const { return metadata_.find(key) != metadata_.end(); }

  // Typed access. `get_*` throw Error{kBadModel} when the key is absent or of another type;
  // with a default they throw only for another type. Integers convert when the value fits.
  uint64_t get_uint(std::string_view key) const;
  uint64_t get_uint(std::string_view key, uint64_t otherwise) const;
  double get_float(std::string_view key) const;
  double get_float(std::string_view key, double otherwise) const;
  bool get_bool(std::string_view key, bool otherwise) const;
  const std::string& get_string(std::string_view key) const;
  std::string get_string(std::string_view key, std::string_view otherwise) const;
  const std::vector<std::string>& get_strings(std::string_view key) const;
  std::vector<double> get_floats(std::string_view key) const;
  std::vector<int64_t> get_ints(std::string_view key) const;

 private:
  GgufFile();
  void add_tensors(std::vector<GgufTensor> tensors, const std::string& label);
  const GgufValue& value(std::string_view key) const;
  [[noreturn]] void fail_type(std::string_view key, std::string_view expected) const;

  std::string path_;
  uint32_t version_ = 0;
  uint64_t file_bytes_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> tensor_index_;
  std::vector<std::unique_ptr<MmapFile>> parts_;
};

}  // namespace snapkv
