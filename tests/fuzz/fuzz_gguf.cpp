// SPDX-License-Identifier: MIT
// The fuzz target for model files: libFuzzer's entry point (preset `fuzz`), also linked into
// tests/format, which replays corpus/ and mutations of valid files.
#include "tests/fuzz/fuzz_gguf.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "format/gguf.h"
#include "snapkv/error.h"
#include "snapkv/tokenizer.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {
namespace {

volatile unsigned char g_sink;

void touch(const GgufTensor& t) {
  const auto* data = static_cast<const unsigned char*>(t.tensor.data);
  g_sink = static_cast<unsigned char>(data[0] ^ data[t.bytes() - 1]);
}

void use(const Tokenizer& tokenizer) {
  constexpr std::string_view kText = "ab <x></s> ab\xff\xe2\x96 \n";
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer.encode(kText, true, parse_special);
    for (const int32_t id : ids) SNAPKV_CHECK(id >= 0 && id < tokenizer.n_vocab());
    tokenizer.decode(ids, parse_special);
  }
  const auto n = static_cast<int32_t>(std::min<int64_t>(tokenizer.n_vocab(), 1000));
  for (int32_t id = 0; id < n; ++id) {
    tokenizer.piece(id, true);
    tokenizer.is_end_of_generation(id);
  }
}

}  // namespace

Outcome read_hostile(std::span<const std::byte> bytes) {
  Outcome outcome = Outcome::kNoFile;
  try {
    const GgufFile file = GgufFile::parse(bytes, "input");
    outcome = Outcome::kNoTokenizer;
    for (const GgufTensor& t : file.tensors()) touch(t);
    const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::from_gguf(file);
    outcome = Outcome::kTokenizer;
    use(*tokenizer);
  } catch (const Error&) {
    // the expected outcome for bad input
  }
  return outcome;
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::read_hostile({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
