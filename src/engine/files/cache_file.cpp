// SPDX-License-Identifier: MIT
#include "engine/files/cache_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/stop_check.h"
#include "snapkv/model_files.h"

namespace snapkv {
namespace {

constexpr size_t kHashedAtOnce = size_t{64} << 20;
constexpr std::string_view kMagic(kCacheMagic, sizeof(kCacheMagic));
/// What files began with before they were containers.
constexpr std::string_view kOldMagics[] = {"SNAPKVS\n", "SNAPKVP\n"};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::string_view text_of(const char (&kind)[8]) {
  return {kind, static_cast<size_t>(std::find(kind, kind + sizeof(kind), '\0') - kind)};
}

std::string name_of(const CacheBlock& block) {
  const std::string kind = printable(text_of(block.kind));
  return block.il < 0 ? fmt::format("block \"{}\"", kind)
                      : fmt::format("block \"{}\" of layer {}", kind, block.il);
}

bool begins_as_cache(std::string_view bytes) {
  return bytes.starts_with(kMagic) || bytes.starts_with(kOldMagics[0]) ||
         bytes.starts_with(kOldMagics[1]);
}

std::string first_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::kRuntime, "can't read '{}': {}", path, std::strerror(errno));
  std::string bytes(sizeof(CacheStart), '\0');
  in.read(bytes.data(), std::ssize(bytes));
  return bytes;
}

CacheStart read_start(std::span<const std::byte> bytes, const std::string& path) {
  CacheStart start = {};
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof(start)),
              reinterpret_cast<std::byte*>(&start));
  const std::string_view magic(start.magic, sizeof(start.magic));
  if (begins_as_cache(magic) && (magic != kMagic || start.version < kCacheVersion)) {
    fail(ErrorCode::kBadModel,
         "'{}' was written by an older version of snapkv, whose saved caches cannot be read any "
         "more: make it again",
         path);
  }
  if (magic != kMagic) {
    fail(ErrorCode::kBadModel, "'{}' is not a saved cache: it begins with \"{}\"", path,
         printable(magic.substr(0, bytes.size())));
  }
  if (start.version != kCacheVersion) {
    fail(ErrorCode::kBadModel, "'{}': version {} of saved caches is not known, only {}", path,
         start.version, kCacheVersion);
  }
  return start;
}

const char* what(CacheContents contents) {
  return contents == CacheContents::session ? "a compressed session"
                                            : "every row of a document (KvPrefix::save)";
}

void check_zeros(std::span<const std::byte> bytes, const std::string& path) {
  for (const std::byte b : bytes) {
    if (b != std::byte{0}) fail_damaged(path, "there are bytes between two blocks");
  }
}

}  // namespace

uint64_t block_checksum(std::span<const std::byte> bytes) {
  Hash64 hash;
  do {
    check_stop("reading the cache");
    const auto now = bytes.first(std::min(bytes.size(), kHashedAtOnce));
    hash.add(now);
    bytes = bytes.subspan(now.size());
  } while (!bytes.empty());
  return hash.value();
}

uint64_t ends_checksum(std::span<const std::byte> bytes, size_t table_at) {
  Hash64 hash;
  hash.add(bytes.first(sizeof(CacheStart)));
  hash.add(bytes.subspan(table_at, bytes.size() - sizeof(uint64_t) - table_at));
  return hash.value();
}

CacheFileWriter::CacheFileWriter(const std::string& path, CacheContents contents)
    : file_((check_cache_path(path), path), /*overwrite=*/true) {
  std::copy(std::begin(kCacheMagic), std::end(kCacheMagic), start_.magic);
  start_.version = kCacheVersion;
  start_.contents = contents;
  file_.write(bytes_of(start_));
}

void CacheFileWriter::block(std::string_view kind, std::span<const std::byte> bytes) {
  begin(kind, -1);
  store(bytes);
  end();
}

void CacheFileWriter::layer_block(std::string_view kind, int il,
                                  const std::function<void(const ByteSink&)>& save) {
  check_stop("saving the cache");
  begin(kind, il);
  save([this](std::span<const std::byte> bytes) { store(bytes); });
  end();
}

void CacheFileWriter::finish() {
  align();
  std::vector<std::byte> ends;
  const auto add = [&](std::span<const std::byte> part) {
    ends.insert(ends.end(), part.begin(), part.end());
  };
  CacheEnd end = {blocks_.size(), 0};
  add(bytes_of(start_));
  add(std::as_bytes(std::span(blocks_)));
  add(bytes_of(end));
  end.checksum = ends_checksum(ends, sizeof(start_));
  file_.write(std::as_bytes(std::span(blocks_)));
  file_.write(bytes_of(end));
  file_.commit();
}

void CacheFileWriter::begin(std::string_view kind, int il) {
  align();
  CacheBlock block = {};
  SNAPKV_CHECK(kind.size() <= sizeof(block.kind));
  std::copy(kind.begin(), kind.end(), block.kind);
  block.il = il;
  blocks_.push_back(block);
  hash_ = Hash64();
}

void CacheFileWriter::store(std::span<const std::byte> bytes) {
  hash_.add(bytes);
  file_.write(bytes);
  blocks_.back().bytes += bytes.size();
}

void CacheFileWriter::end() {
  blocks_.back().checksum = hash_.value();
}

void CacheFileWriter::align() {
  static constexpr std::byte kZeros[kBlockAlignment] = {};
  file_.write(std::span(kZeros).first(aligned_block(file_.position()) - file_.position()));
}

CacheFile::CacheFile(std::span<const std::byte> bytes, std::string path, CacheContents contents)
    : path_(std::move(path)) {
  const CacheStart start = read_start(bytes, path_);
  CacheEnd end;
  if (bytes.size() < sizeof(start) + sizeof(end)) fail_damaged(path_, "it is cut off");
  std::memcpy(&end, bytes.data() + bytes.size() - sizeof(end), sizeof(end));
  const uint64_t most = (bytes.size() - sizeof(start) - sizeof(end)) / sizeof(CacheBlock);
  if (end.n_blocks > most) {
    fail_damaged(path_, "it is cut off, or {} blocks are too many for {} bytes", end.n_blocks,
                 bytes.size());
  }
  const uint64_t table_at = bytes.size() - sizeof(end) - end.n_blocks * sizeof(CacheBlock);
  if (ends_checksum(bytes, table_at) != end.checksum) {
    fail_damaged(path_, "it is cut off, or the checksum of its table is wrong");
  }
  if (start.contents != contents) {
    fail(ErrorCode::kBadModel, "'{}' holds {}, expected {}", path_,
         start.contents == CacheContents::session || start.contents == CacheContents::all_rows
             ? what(start.contents)
             : "what this version does not know",
         what(contents));
  }
  blocks_.resize(end.n_blocks);
  std::copy_n(bytes.begin() + table_at, end.n_blocks * sizeof(CacheBlock),
              std::as_writable_bytes(std::span(blocks_)).begin());
  uint64_t at = sizeof(start);
  for (const CacheBlock& block : blocks_) {
    const uint64_t begin = std::min(aligned_block(at), table_at);
    if (block.bytes > table_at - begin) {
      fail_damaged(path_, "{} has {} bytes, and {} are left", name_of(block), block.bytes,
                   table_at - begin);
    }
    if (block.unused != 0) {
      fail_damaged(path_, "{} has {} in a field that is 0", name_of(block), block.unused);
    }
    check_zeros(bytes.subspan(at, begin - at), path_);
    bytes_.push_back(bytes.subspan(begin, block.bytes));
    at = begin + block.bytes;
  }
  if (aligned_block(at) != table_at) {
    fail_damaged(path_, "its blocks end at {} and their table begins at {}", at, table_at);
  }
  check_zeros(bytes.subspan(at, table_at - at), path_);
  hashed_ = std::make_unique<std::once_flag[]>(blocks_.size());
}

void CacheFile::expect(size_t i, std::string_view kind, int il) const {
  if (i >= n_blocks()) fail_damaged(path_, "it has no block {}, a \"{}\"", i, kind);
  if (text_of(blocks_[i].kind) == kind && blocks_[i].il == il) return;
  CacheBlock expected = {};
  kind.copy(expected.kind, sizeof(expected.kind));
  expected.il = il;
  fail(ErrorCode::kBadModel, "'{}': block {} is {}, expected {}", path_, i, name_of(blocks_[i]),
       name_of(expected));
}

std::span<const std::byte> CacheFile::bytes(size_t i) const {
  std::call_once(hashed_[i], [&] {
    if (block_checksum(bytes_[i]) == blocks_[i].checksum) return;
    fail_damaged(path_, "the checksum of {} is wrong", name_of(blocks_[i]));
  });
  return bytes_[i];
}

SavedState CacheFile::state(size_t i, int il, const LayerState& state, int64_t n) const {
  expect(i, state.kind(), il);
  const uint64_t most = state.most_saved_bytes(n);
  if (blocks_[i].bytes > most) {
    fail_damaged(path_, "{} has {} bytes, expected {} at most", name_of(blocks_[i]),
                 blocks_[i].bytes, most);
  }
  return {bytes(i), n, fmt::format("'{}': layer {}", path_, il)};
}

void CacheFile::check_all() const {
  for (size_t i = 0; i < n_blocks(); ++i) bytes(i);
}

FieldReader::FieldReader(const CacheFile& file, size_t i, std::string_view kind)
    : file_(file), in_((file.expect(i, kind), file.bytes(i)), file.path()) {}

int64_t FieldReader::number(const char* field, int64_t least, int64_t most) {
  const auto value = in_.read<int64_t>(field);
  if (value < least || value > most) {
    fail_damaged(file_.path(), "{} is {}, expected {} to {}", field, value, least, most);
  }
  return value;
}

void FieldReader::end() const {
  if (in_.remaining() == 0) return;
  fail_damaged(file_.path(), "{} bytes follow the last field of a block", in_.remaining());
}

void write_head(CacheFileWriter& out, const SavedCache& head) {
  FieldWriter fields;
  fields.number(static_cast<int64_t>(head.fingerprint));
  fields.text(head.model);
  fields.text(head.notes);
  fields.text(name(head.type));
  fields.number(head.n_ctx);
  fields.number(head.n_past);
  out.block("head", fields.bytes());
}

SavedCache read_head(const CacheFile& file) {
  constexpr auto kLimits = std::numeric_limits<int64_t>();
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0};
  FieldReader in(file, 0, "head");
  SavedCache head;
  head.fingerprint = static_cast<uint64_t>(in.number("fingerprint", kLimits.min(), kLimits.max()));
  head.model = in.text("model");
  head.notes = in.text("notes");
  const std::string type = in.text("type");
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](DType t) { return type == name(t); });
  if (found == std::end(kTypes)) {
    fail_damaged(file.path(), "the type of its rows is \"{}\"", printable(type));
  }
  head.type = *found;
  head.n_ctx = in.number("n_ctx", 1, kMostRows);
  head.n_past = in.number("n_past", 1, kMostRows);
  in.end();
  return head;
}

std::string model_label(const ModelInfo& info) {
  if (info.yarn_factor == 0) return info.name;
  return fmt::format("{} (YaRN, {} times {} tokens)", info.name, info.yarn_factor,
                     info.yarn_orig_ctx);
}

void check_model(const CacheFile& file, const SavedCache& head, const Model& model,
                 size_t n_blocks) {
  if (head.fingerprint != model.fingerprint()) {
    fail(ErrorCode::kUsage,
         "'{}': saved with another model, \"{}\" of fingerprint {:016x}; this one, \"{}\", {}, has "
         "{:016x}",
         file.path(), head.model, head.fingerprint, model_label(model.info()), model.info().path,
         model.fingerprint());
  }
  if (file.n_blocks() != n_blocks) {
    fail_damaged(file.path(), "it has {} blocks, and the model that it names needs {}",
                 file.n_blocks(), n_blocks);
  }
}

bool is_saved_cache(const std::string& path) { return begins_as_cache(first_bytes(path)); }

std::optional<CacheContents> cache_contents(const std::string& path) {
  const std::string bytes = first_bytes(path);
  if (!begins_as_cache(bytes)) return std::nullopt;
  return read_start(std::as_bytes(std::span(bytes)), path).contents;
}

std::optional<CacheContents> cache_contents(const LentFile& file) {
  const auto first = file.bytes.first(std::min(file.bytes.size(), sizeof(CacheStart)));
  if (!begins_as_cache({reinterpret_cast<const char*>(first.data()), first.size()})) {
    return std::nullopt;
  }
  return read_start(first, file.name).contents;
}

}  // namespace snapkv
