// SPDX-License-Identifier: MIT
// The fuzz target for saved caches: libFuzzer's entry point (preset `fuzz`), also linked into
// tests/engine, which tries mutations of valid files.
#include "tests/fuzz/fuzz_session.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/kv_prefix_file.h"
#include "engine/session_file.h"
#include "engine/zstd_frame.h"
#include "snapkv/error.h"
#include "snapkv/prefill.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {
namespace {

constexpr size_t kMostDecoded = size_t{1} << 24;
volatile unsigned char g_sink;

bool parse(std::span<const std::byte> bytes) {
  try {
    const SessionFile file = parse_session_file(bytes, "input");
    Buffer decoded;
    for (int64_t il = 0; il < std::ssize(file.layers); ++il) {
      SNAPKV_CHECK(std::ssize(file.layers[il].n_kv) == file.n_head_kv);
      if (rows_bytes(file, il) > kMostDecoded) continue;  // a model would refuse it
      const SessionFileRows rows = rows_of(file, il, decoded);
      for (const auto part : {rows.positions, rows.keys, rows.values, rows.queries}) {
        if (part.empty()) continue;
        g_sink = static_cast<unsigned char>(part.front() ^ part.back());
      }
    }
    validate(file.saved.options.kv);
    return true;
  } catch (const Error&) {
    return false;  // the expected outcome for bad input
  }
}

// The same for a file of uncompressed rows.
bool parse_prefix(std::span<const std::byte> bytes) {
  try {
    const PrefixFile file = parse_prefix_file(bytes, "input");
    SNAPKV_CHECK(std::ssize(file.layers) == file.n_layer);
    SNAPKV_CHECK(std::ssize(file.hashes) == file.n_layer);
    for (const std::span<const std::byte> layer : file.layers) {
      if (!file.has_frames) {
        SNAPKV_CHECK(layer.size() == file.layer_bytes);
        g_sink = static_cast<unsigned char>(layer.front() ^ layer.back());
      } else if (file.layer_bytes <= kMostDecoded) {
        SNAPKV_CHECK(decode_zstd_frame(layer, file.layer_bytes, "input", "layer").bytes() ==
                     file.layer_bytes);
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Rows in a file may have any content; files of other models are refused.
void use(std::span<const std::byte> bytes, const std::shared_ptr<const Model>& model) {
  static InputFile input;
  input.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  constexpr int32_t kToken = 5;
  try {
    if (!is_prefix_file(input.path())) {
      Session session(model, describe_session(input.path()).options);
      session.load(input.path());
      session.decode(kToken);
      return;
    }
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
}

bool is_prefix(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof(kPrefixMagic) &&
         std::memcmp(bytes.data(), kPrefixMagic, sizeof(kPrefixMagic)) == 0;
}

}  // namespace

bool read_hostile_session(std::span<const std::byte> bytes,
                          const std::shared_ptr<const Model>& model) {
  is_prefix(bytes) ? parse_prefix(bytes) : parse(bytes);
  if (bytes.size() < sizeof(uint64_t)) return false;
  std::vector<std::byte> summed(bytes.begin(), bytes.end());
  const auto content = std::span(summed).first(summed.size() - sizeof(uint64_t));
  uint64_t checksum = 0;
  try {
    checksum = is_prefix(bytes) ? prefix_checksum(prefix_ends(summed, "input"))
                                : session_checksum(content);
  } catch (const Error&) {
    return false;
  }
  std::memcpy(summed.data() + content.size(), &checksum, sizeof(checksum));
  const bool is_whole = is_prefix(bytes) ? parse_prefix(summed) : parse(summed);
  if (is_whole) use(summed, model);
  return is_whole;
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  static const auto model = snapkv::Model::load({.path = SNAPKV_SOURCE_DIR "/models/needle.gguf",
                                                 .device = snapkv::Device::cpu,
                                                 .n_threads = 1});
  snapkv::test::read_hostile_session({reinterpret_cast<const std::byte*>(data), size}, model);
  return 0;
}
