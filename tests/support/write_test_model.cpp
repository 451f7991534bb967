// SPDX-License-Identifier: MIT
// snapkv-test-model NAME OUT.gguf: writes a random model of tests/support/test_models.h to a file,
// so that tools/llama_oracle.py can show it to llama.cpp.
#include <fmt/core.h>

#include "snapkv/error.h"
#include "tests/support/test_models.h"

int main(int argc, char** argv) {
  for (const auto& m : snapkv::test::test_models()) {
    if (argc == 3 && m.name == argv[1]) {
      try {
        snapkv::write_random_model(argv[2], m.shape, m.options);
        return 0;
      } catch (const snapkv::Error& e) {
        fmt::print(stderr, "snapkv-test-model: {}\n", e.what());
        return 1;
      }
    }
  }
  fmt::print(stderr, "usage: snapkv-test-model NAME OUT.gguf\nNAME:");
  for (const auto& m : snapkv::test::test_models()) fmt::print(stderr, " {}", m.name);
  fmt::print(stderr, "\n");
  return 2;
}
