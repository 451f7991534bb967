// SPDX-License-Identifier: MIT
// The fuzz target for saved caches: libFuzzer's entry point (preset `fuzz`), also linked into
// tests/engine, which tries mutations of valid files.
#include "tests/fuzz/fuzz_session.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/files/cache_file.h"
#include "snapkv/error.h"
#include "snapkv/prefill.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {
namespace {

volatile unsigned char g_sink;

CacheContents contents_of(std::span<const std::byte> bytes) {
  CacheStart start = {};
  if (bytes.size() >= sizeof(start)) std::memcpy(&start, bytes.data(), sizeof(start));
  return start.contents;
}

bool parse(std::span<const std::byte> bytes) {
  try {
    const CacheFile file(bytes, "input", contents_of(bytes));
    file.check_all();
    read_head(file);
    for (size_t i = 0; i < file.n_blocks(); ++i) {
      const auto content = file.bytes(i);
      SNAPKV_CHECK(content.size() == file.block(i).bytes);
      if (content.empty()) continue;
      g_sink = static_cast<unsigned char>(content.front() ^ content.back());
    }
    return true;
  } catch (const Error&) {
    return false;  // the expected outcome for bad input
  }
}

// Rows in a file may have any content; files of other models are refused. Returns whether the file
// says what it holds.
bool use(std::span<const std::byte> bytes, const std::shared_ptr<const Model>& model) {
  static InputFile input;
  input.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  constexpr int32_t kToken = 5;
  bool is_whole = false;
  try {
    if (!is_prefix_file(input.path())) {
      const SavedSession saved = describe_session(input.path());
      validate(saved.options.kv);
      is_whole = true;
      Session session(model, saved.options);
      session.load(input.path());
      session.decode(kToken);
      return true;
    }
    is_whole = !describe_prefix(input.path()).tokens.empty();
    const auto prefix = KvPrefix::load(model, input.path());
    std::vector<int32_t> prompt(prefix->tokens().begin(), prefix->tokens().end());
    const int64_t n_tokens = std::ssize(prompt);
    prompt.insert(prompt.end(), 40, kToken);  // more than a window
    Session session(model, SessionOptions());
    session.prefill(prompt, {.prefix = prefix, .n_from_prefix = n_tokens});
    session.decode(kToken);
  } catch (const Error&) {
    // the expected outcome for bad input
  }
  return is_whole;
}

}  // namespace

std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
  CacheEnd end;
  if (bytes.size() < sizeof(CacheStart) + sizeof(end)) return bytes;
  const size_t end_at = bytes.size() - sizeof(end);
  std::memcpy(&end, bytes.data() + end_at, sizeof(end));
  if (end.n_blocks > (end_at - sizeof(CacheStart)) / sizeof(CacheBlock)) return bytes;
  const size_t table_at = end_at - end.n_blocks * sizeof(CacheBlock);
  const std::span<const std::byte> all(bytes);
  uint64_t at = sizeof(CacheStart);
  for (size_t i = table_at; i < end_at; i += sizeof(CacheBlock)) {
    CacheBlock block;
    std::memcpy(&block, bytes.data() + i, sizeof(block));
    at = aligned_block(at);
    if (at > table_at || block.bytes > table_at - at) break;
    block.checksum = block_checksum(all.subspan(at, block.bytes));
    std::memcpy(bytes.data() + i, &block, sizeof(block));
    at += block.bytes;
  }
  end.checksum = ends_checksum(all, table_at);
  std::memcpy(bytes.data() + end_at, &end, sizeof(end));
  return bytes;
}

bool read_hostile_session(std::span<const std::byte> bytes,
                          const std::shared_ptr<const Model>& model) {
  parse(bytes);
  const std::vector<std::byte> with_checksums = sealed({bytes.begin(), bytes.end()});
  return parse(with_checksums) && use(with_checksums, model);
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  static const auto model = snapkv::Model::load(
      {.path = SNAPKV_SOURCE_DIR "/models/needle.gguf", .device = "cpu", .n_threads = 1});
  snapkv::test::read_hostile_session({reinterpret_cast<const std::byte*>(data), size}, model);
  return 0;
}
