// SPDX-License-Identifier: MIT
// The container of saved caches: blocks of bytes, each with its kind, its layer and its checksum.
// docs/session-file.md has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/hash.h"
#include "cache/layer_state.h"
#include "format/byte_reader.h"
#include "snapkv/engine.h"
#include "snapkv/lent_file.h"

namespace snapkv {

enum class CacheContents : uint32_t {
  session = 1,   // Session::save()
  all_rows = 2,  // KvPrefix::save()
};

/// The first bytes of a file.
struct CacheStart {
  char magic[8];
  uint32_t version;
  CacheContents contents;
};
inline constexpr char kCacheMagic[8] = {'S', 'N', 'A', 'P', 'K', 'V', 'C', '\n'};
inline constexpr uint32_t kCacheVersion = 2;

/// An entry of the table that follows the blocks.
struct CacheBlock {
  char kind[8];       // padded with zeros
  int32_t il;         // layer, -1: of all
  uint32_t unused;    // 0
  uint64_t bytes;
  uint64_t checksum;  // XXH3, 64 bits
};

/// The last bytes of a file.
struct CacheEnd {
  uint64_t n_blocks;
  uint64_t checksum;  // ends_checksum()
};

/// Blocks and the table begin at multiples of this; zeros fill the gaps.
inline constexpr size_t kBlockAlignment = Buffer::kAlignment;

constexpr uint64_t aligned_block(uint64_t at) {
  return (at + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

template <typename... Args>
[[noreturn]] void fail_damaged(const std::string& path, fmt::format_string<Args...> format,
                               Args&&... args) {
  fail(ErrorCode::kBadModel, "'{}': {}; the saved cache is damaged", path,
       fmt::format(format, std::forward<Args>(args)...));
}

/// XXH3, 64 bits, of a block.
uint64_t block_checksum(std::span<const std::byte> bytes);
/// The same of a file's CacheStart, its table and the number of blocks.
uint64_t ends_checksum(std::span<const std::byte> bytes, size_t table_at);

class CacheFileWriter {
 public:
  /// The file replaces only an empty one or a saved cache. Throws as check_cache_path() and
  /// AtomicFile do.
  CacheFileWriter(const std::string& path, CacheContents contents);

  void block(std::string_view kind, std::span<const std::byte> bytes);
  /// A block of layer il, which `save` gives to a sink piece by piece.
  void layer_block(std::string_view kind, int il,
                   const std::function<void(const ByteSink&)>& save);
  /// Writes the table and gives the file its name.
  void finish();

 private:
  void begin(std::string_view kind, int il);
  void store(std::span<const std::byte> bytes);
  void end();
  void align();

  AtomicFile file_;
  CacheStart start_ = {};
  std::vector<CacheBlock> blocks_;
  Hash64 hash_;  // of the current block
};

/// The blocks of a file. No field is trusted: every error is kBadModel and names the file.
class CacheFile {
 public:
  /// Checks the table against the file's size and its checksum. The blocks' bytes are not read, and
  /// `bytes` must outlive this.
  CacheFile(std::span<const std::byte> bytes, std::string path, CacheContents contents);

  const std::string& path() const { return path_; }
  size_t n_blocks() const { return blocks_.size(); }
  const CacheBlock& block(size_t i) const { return blocks_[i]; }
  /// Throws unless block i is of this kind and layer.
  void expect(size_t i, std::string_view kind, int il = -1) const;
  /// The bytes of block i. The first call compares the checksum.
  std::span<const std::byte> bytes(size_t i) const;
  /// Block i as a saved state of layer il after n tokens, checked to be of the kind of `state` and
  /// not larger than it can be.
  SavedState state(size_t i, int il, const LayerState& state, int64_t n) const;
  /// Compares the checksum of every block.
  void check_all() const;

 private:
  std::string path_;
  std::vector<CacheBlock> blocks_;
  std::vector<std::span<const std::byte>> bytes_;
  std::unique_ptr<std::once_flag[]> hashed_;
};

/// Collects the fields of a block.
class FieldWriter {
 public:
  void number(int64_t value) { add(&value, sizeof(value)); }
  void text(std::string_view s) {
    number(std::ssize(s));
    add(s.data(), s.size());
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  void add(const void* data, size_t n) { bytes_.append(static_cast<const char*>(data), n); }
  std::string bytes_;
};

/// Reads the fields of block i of a file, and trusts none of them.
class FieldReader {
 public:
  FieldReader(const CacheFile& file, size_t i, std::string_view kind);
  int64_t number(const char* field, int64_t least, int64_t most);
  std::string text(const char* field) { return in_.read_string(field); }
  uint64_t bytes_left() const { return in_.remaining(); }
  /// Throws unless every byte has been read.
  void end() const;

 private:
  const CacheFile& file_;
  ByteReader in_;
};

/// The block that every file begins with.
/// The name of a model in saved caches, with the scaling of its positions if there is one.
std::string model_label(const ModelInfo& info);
void write_head(CacheFileWriter& out, const SavedCache& head);
SavedCache read_head(const CacheFile& file);
/// Throws Error{kUsage} naming both models unless the file belongs to this one, Error{kBadModel}
/// unless it has so many blocks.
void check_model(const CacheFile& file, const SavedCache& head, const Model& model,
                 size_t n_blocks);

/// Whether a file begins as a saved cache does, perhaps one of an older version. Throws
/// Error{kRuntime} if it cannot be read.
bool is_saved_cache(const std::string& path);
/// What a file holds; nothing if it is not a saved cache. Throws Error{kBadModel} for those of
/// other versions, Error{kRuntime} if it cannot be read.
std::optional<CacheContents> cache_contents(const std::string& path);
std::optional<CacheContents> cache_contents(const LentFile& file);

}  // namespace snapkv
