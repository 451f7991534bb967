// SPDX-License-Identifier: MIT
// snapkv-test-model NAME OUT.gguf: writes a random model of tests/support/test_models.h or
// family_models.h to a file, so that tools/llama_oracle.py can show it to llama.cpp.
#include <fmt/core.h>

#include "snapkv/error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

/// Writes the model with that name; returns whether there is one.
bool write(const std::string& name, const std::string& path) {
  for (const TestModel& m : test_models()) {
    if (m.name != name) continue;
    write_random_model(path, m.shape, m.options);
    return true;
  }
  for (const FamilyModel& m : family_models()) {
    if (m.name != name) continue;
    write_family_model(name, path);
    return true;
  }
  return false;
}

int run(int argc, char** argv) {
  try {
    if (argc == 3 && write(argv[1], argv[2])) return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "snapkv-test-model: {}\n", e.what());
    return 1;
  }
  fmt::print(stderr, "usage: snapkv-test-model NAME OUT.gguf\nNAME:");
  for (const auto& m : test_models()) fmt::print(stderr, " {}", m.name);
  for (const auto& m : family_models()) fmt::print(stderr, " {}", m.name);
  fmt::print(stderr, "\n");
  return 2;
}

}  // namespace
}  // namespace snapkv::test

int main(int argc, char** argv) { return snapkv::test::run(argc, argv); }
