// SPDX-License-Identifier: MIT
// The fuzz target of saved sessions: libFuzzer's entry point (preset `fuzz`), also linked into
// tests/engine, which tries mutations of valid files.
#include "tests/fuzz/fuzz_session.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/session_file.h"
#include "snapkv/error.h"
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
      if (rows_bytes(file, il) > kMostDecoded) continue;  // a model would have refused it
      const SessionFileRows rows = rows_of(file, il, decoded);
      for (const auto part : {rows.positions, rows.keys, rows.values, rows.queries}) {
        if (part.empty()) continue;
        g_sink = static_cast<unsigned char>(part.front() ^ part.back());
      }
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
  const snapkv::test::TimeLimit limit;
  snapkv::test::read_hostile_session({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
