// SPDX-License-Identifier: MIT
#include "engine/kv_prefix_file.h"

#include <cstring>
#include <fstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "cache/kv_layer.h"
#include "format/mmap_file.h"

namespace snapkv {
namespace {

/// Reads the fields of a header and trusts none of them.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  std::span<const std::byte> take(size_t n, const char* field) {
    if (n > bytes_.size() - at_) {
      fail(ErrorCode::kBadModel, "'{}': {} needs {} bytes, {} are left", path_, field, n,
           bytes_.size() - at_);
    }
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }
  template <typename T>
  T number(const char* field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }
  int64_t count(const char* field, int64_t most) {
    const auto n = number<int64_t>(field);
    if (n < 1 || n > most) {
      fail(ErrorCode::kBadModel, "'{}': {} is {}, expected 1 to {}", path_, field, n, most);
    }
    return n;
  }
  std::string text(const char* field) {
    const auto n = number<uint64_t>(field);
    const std::span<const std::byte> value = take(n, field);
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  size_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  size_t at_ = 0;
};

DType parse_type(const std::string& text, const std::string& path) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    if (text == name(type)) return type;
  }
  fail(ErrorCode::kBadModel, "'{}': type is \"{}\", expected f32, f16, bf16 or q8_0", path, text);
}

/// Reads the fields up to the tokens; returns their size in bytes.
size_t read_head(std::span<const std::byte> bytes, const std::string& path, PrefixFile& file) {
  Reader in(bytes, path);
  if (std::memcmp(in.take(sizeof(kPrefixMagic), "magic").data(), kPrefixMagic,
                  sizeof(kPrefixMagic)) != 0) {
    fail(ErrorCode::kBadModel, "'{}' is no file of uncompressed rows (KvPrefix::save)", path);
  }
  const auto version = in.number<uint32_t>("version");
  if (version != kPrefixVersion && version != kPrefixVersionZstd) {
    fail(ErrorCode::kBadModel, "'{}': version {}, expected {} or {}", path, version, kPrefixVersion,
         kPrefixVersionZstd);
  }
  file.has_frames = version == kPrefixVersionZstd;
  file.saved.fingerprint = in.number<uint64_t>("fingerprint");
  file.saved.model = in.text("name of the model");
  file.saved.notes = in.text("notes");
  file.saved.type = parse_type(in.text("type"), path);
  file.saved.n_ctx = in.count("n_ctx", kMostTokens);
  file.n_layer = in.count("n_layer", 1 << 16);
  file.n_head_kv = in.count("n_head_kv", 1 << 16);
  file.head_dim = in.count("head_dim", 1 << 16);
  if (file.head_dim % block_size(file.saved.type) != 0) {
    fail(ErrorCode::kBadModel, "'{}': head_dim {} is no multiple of {}, as {} needs", path,
         file.head_dim, block_size(file.saved.type), name(file.saved.type));
  }
  const int64_t n_tokens = in.count("n_tokens", kMostRows);
  const auto tokens = in.take(static_cast<size_t>(n_tokens) * sizeof(int32_t), "tokens");
  file.saved.tokens.resize(n_tokens);
  std::memcpy(file.saved.tokens.data(), tokens.data(), tokens.size());
  return in.at();
}

std::vector<uint64_t> numbers_at(std::span<const std::byte> bytes, size_t at, size_t n) {
  std::vector<uint64_t> numbers(n);
  std::memcpy(numbers.data(), bytes.data() + at, n * sizeof(uint64_t));
  return numbers;
}

[[noreturn]] void fail_size(const PrefixFile& file, size_t n_bytes, const std::string& path) {
  fail(ErrorCode::kBadModel, "'{}': {} bytes are not those of {} layers of {} tokens", path,
       n_bytes, file.n_layer, file.saved.tokens.size());
}

PrefixEnds read_ends(std::span<const std::byte> bytes, const std::string& path, PrefixFile& file) {
  const size_t head = read_head(bytes, path, file);
  const auto n_layer = static_cast<size_t>(file.n_layer), n_tokens = file.saved.tokens.size();
  const size_t token_bytes = KvLayer::row_bytes(file.saved.type, file.head_dim) * file.n_head_kv;
  if (token_bytes > (file.has_frames ? kMostBytes : bytes.size()) / n_tokens) {
    fail_size(file, bytes.size(), path);
  }
  file.layer_bytes = token_bytes * n_tokens;
  const size_t tail = (file.has_frames ? 2 : 1) * n_layer * sizeof(uint64_t);
  if (tail + sizeof(uint64_t) > bytes.size() - head) fail_size(file, bytes.size(), path);
  return {bytes.first(head), bytes.subspan(bytes.size() - sizeof(uint64_t) - tail, tail)};
}

}  // namespace

PrefixEnds prefix_ends(std::span<const std::byte> bytes, const std::string& path) {
  PrefixFile file;
  return read_ends(bytes, path, file);
}

uint64_t prefix_checksum(const PrefixEnds& ends) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, ends.head.data(), ends.head.size());
  XXH3_64bits_update(&state, ends.tail.data(), ends.tail.size());
  return XXH3_64bits_digest(&state);
}

PrefixFile parse_prefix_file(std::span<const std::byte> bytes, const std::string& path) {
  PrefixFile file;
  const PrefixEnds ends = read_ends(bytes, path, file);
  if (prefix_checksum(ends) != numbers_at(bytes, bytes.size() - sizeof(uint64_t), 1)[0]) {
    fail(ErrorCode::kBadModel, "'{}': the checksum of its header is wrong: it is damaged", path);
  }
  // the layers' sizes if they are frames, then their checksums
  const auto n_layer = static_cast<size_t>(file.n_layer);
  const std::vector<uint64_t> sizes = file.has_frames
                                          ? numbers_at(ends.tail, 0, n_layer)
                                          : std::vector<uint64_t>(n_layer, file.layer_bytes);
  file.hashes = numbers_at(ends.tail, ends.tail.size() - n_layer * sizeof(uint64_t), n_layer);
  const auto end_at = static_cast<size_t>(ends.tail.data() - bytes.data());
  size_t at = next_prefix_page(ends.head.size());
  for (const uint64_t size : sizes) {
    if (at > end_at || size > end_at - at) fail_size(file, bytes.size(), path);
    file.layers.push_back(bytes.subspan(at, size));
    at = next_prefix_page(at + size);
  }
  if (at != end_at) fail_size(file, bytes.size(), path);
  return file;
}

bool is_prefix_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char magic[sizeof(kPrefixMagic)] = {};
  if (!in) fail(ErrorCode::kRuntime, "{}: can't be read: {}", path, std::strerror(errno));
  in.read(magic, sizeof(magic));
  return in.gcount() == sizeof(magic) && std::memcmp(magic, kPrefixMagic, sizeof(magic)) == 0;
}

SavedPrefix describe_prefix(const std::string& path) {
  const MmapFile file(path);
  return parse_prefix_file(file.bytes(), path).saved;
}

}  // namespace snapkv
