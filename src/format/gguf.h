// SPDX-License-Identifier: MIT
// GgufFile: a model as the engine reads it: GGUF's metadata keys and named tensors. open() reads
// them from a GGUF file (v2 or v3; one file or the parts of a split). assemble() takes them from
// the reader of another format, under the keys and names that GGUF would have.
//
// Layout of a GGUF file (little endian):
//   "GGUF"  u32 version  u64 n_tensors  u64 n_kv
//   n_kv x    { string key, u32 type, value }            string = u64 length + bytes
//   n_tensors x { string name, u32 n_dims, u64 dims[n_dims], u32 type, u64 offset }
//   padding to general.alignment (default 32), then tensor data; `offset` counts from there
// Dimensions in the file are fastest first; here, as everywhere in the project, outermost first.
// Nothing that is read is trusted: every offset, count and size is checked against the file's size.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/tensor.h"
#include "format/mmap_file.h"
#include "snapkv/variant.h"

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

/// One metadata value. Scalars keep their class (unsigned, signed, float, bool, string). Arrays
/// have one element type and cannot be nested.
struct GgufValue {
  GgufType type = GgufType::u32;     // as in the file
  GgufType element = GgufType::u32;  // element type if type == array
  Variant<uint64_t, int64_t, double, bool, std::string, std::vector<uint64_t>, std::vector<int64_t>,
          std::vector<double>, std::vector<bool>, std::vector<std::string>>
      value;
};

/// One tensor of a model.
struct GgufTensor {
  static constexpr int kNoFile = -1;

  std::string name;
  Tensor tensor;             // outermost dimension first; no data if not `supported`
  uint64_t file_offset = 0;  // of the data, from the start of its part
  int part = 0;              // index of the model's file; kNoFile: data are in memory
  uint32_t ggml_type = 0;    // number of the type, as in a GGUF file
  uint64_t n_bytes = 0;      // of the data; 0 if the type's size is unknown
  bool supported = true;     // false: has a type without a DType (ReadOptions::any_type)

  uint64_t bytes() const { return n_bytes; }
};

struct ReadOptions {
  FileAccess access = FileAccess::mapped;
  /// Also accepts tensors of types that the project does not compute with; their `data` are
  /// nullptr. For programs that describe files.
  bool any_type = false;
  /// Throws Error{kDoesNotFit} rather than copy more bytes of weights than this: of all of them with
  /// FileAccess::copied, else of those that a folder has in another order.
  uint64_t most_copied = UINT64_MAX;
  /// false: large weights that would have to be copied may have any values. For programs that
  /// describe files.
  bool copies_values = true;
};

/// A model as read from a format other than GGUF. The names of keys and tensors are GGUF's; tensor
/// data are in `files` or `buffers`.
struct ModelParts {
  std::string path;  // for messages
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  // names unique
  std::vector<MmapFile> files;      // GgufTensor::part
  std::vector<Buffer> buffers;
  uint64_t fingerprint = 0;  // of everything read except the tensors
};

class GgufFile {
 public:
  /// Reads `path` or, if it is part 1 of a split ("...-00001-of-0000N.gguf"), all N parts. Throws
  /// Error{kRuntime} if it cannot be read, Error{kBadModel} naming file, field, expected and actual
  /// value if it is not a valid GGUF file.
  static GgufFile open(const std::string& path, const ReadOptions& options = {});
  /// Parses one part from memory, which must outlive the result (tests, fuzzing).
  static GgufFile parse(std::span<const std::byte> bytes, const std::string& label);
  /// A model read from files of another format; version() is then 0.
  static GgufFile assemble(ModelParts parts);

  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;
  ~GgufFile();

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  uint64_t file_bytes() const { return file_bytes_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  /// In file order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  /// A hash of the headers and of 192 bytes of each tensor's data. It is equal for copies of a file
  /// and differs after training, as far as samples can tell.
  uint64_t fingerprint() const;
  /// Throws Error{kBadModel} naming a mapped file whose size or modification time has changed since
  /// it was opened: what was read from it may be wrong.
  void check_unchanged() const;
  /// Sets a value of the metadata, for options that replace what the file says. Another value gives
  /// another fingerprint.
  void replace(const std::string& key, GgufValue value);
  /// nullptr if absent.
  const GgufTensor* find_tensor(std::string_view name) const;
  /// Hints to the kernel: read a tensor's pages ahead, or drop them from memory (they are read
  /// again on the next access). No effect for a tensor that is not in a file.
  void will_need(const GgufTensor& t) const;
  void dont_need(const GgufTensor& t) const;
  /// Calls MmapFile::move_to_huge_pages() for bytes [offset, offset + length) of a part; returns 0
  /// for a file parsed from memory.
  std::optional<size_t> move_to_huge_pages(int part, size_t offset, size_t length);
  bool has(std::string_view key) const { return metadata_.find(key) != metadata_.end(); }

  // Typed access. `get_*` throw Error{kBadModel} if the key is absent or has another type; with a
  // default, only if it has another type. Integers are converted if the value fits.
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
  std::vector<MmapFile> parts_;
  std::vector<Buffer> buffers_;               // of tensors that are not in a file
  std::vector<std::string> replaced_;         // keys
  std::optional<uint64_t> text_fingerprint_;  // replaces that of the parts' headers
};

}  // namespace snapkv
