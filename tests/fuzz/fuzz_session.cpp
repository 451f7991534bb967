// SPDX-License-Identifier: MIT
// The fuzz target of saved sessions: libFuzzer's entry point (preset `fuzz`), also linked into
// tests/engine, which replays corpus_session/ and mutations of valid files.
#include "tests/fuzz/fuzz_session.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/session_file.h"
#include "snapkv/error.h"

namespace snapkv::test {
namespace {

volatile unsigned char g_sink;

bool parse(std::span<const std::byte> bytes) {
  try {
    const SessionFile file = parse_session_file(bytes, "input");
    for (const SessionFileLayer& layer : file.layers) {
      for (const auto part : {layer.positions, layer.keys, layer.values, layer.queries}) {
        if (part.empty()) continue;
        g_sink = static_cast<unsigned char>(part.front() ^ part.back());
      }
      SNAPKV_CHECK(std::ssize(layer.n_kv) == file.n_head_kv);
    }
    validate(file.saved.options.kv);
    return true;
  } catch (const Error&) {
    return false;  // what bad input must end in
  }
}

}  // namespace

bool read_hostile_session(std::span<const std::byte> bytes) {
  parse(bytes);
  if (bytes.size() < sizeof(uint64_t)) return false;
  std::vector<std::byte> summed(bytes.begin(), bytes.end());
  const auto content = std::span(summed).first(summed.size() - sizeof(uint64_t));
  const uint64_t checksum = session_checksum(content);
  std::memcpy(summed.data() + content.size(), &checksum, sizeof(checksum));
  return parse(summed);
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  snapkv::test::read_hostile_session({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
