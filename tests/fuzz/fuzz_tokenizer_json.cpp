// SPDX-License-Identifier: MIT
// libFuzzer's entry point for tokenizer.json files and the texts they encode.
#include "tests/fuzz/hostile_tokenizer.h"
#include "tests/fuzz/time_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::use_hostile_tokenizer_json({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
