// SPDX-License-Identifier: MIT
// What tests of saved sessions and prefixes share: files in a folder of their own, small sessions.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "snapkv/engine.h"
#include "snapkv/prefill.h"
#include "tests/support/test_models.h"

namespace snapkv {

inline std::string temporary(const std::string& name) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "session_file_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

inline std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  const auto* const data = reinterpret_cast<const std::byte*>(chars.data());
  return {data, data + chars.size()};
}

inline void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

inline SessionOptions small(const std::string& policy, DType kv_type, int64_t decode_limit) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = 48;
  options.kv.window_size = 8;
  options.kv_type = kv_type;
  options.kv_decode_limit = decode_limit;
  options.chunk = 32;
  return options;
}

inline std::vector<int32_t> tokens(int n, uint32_t seed = 1) {
  return test::generated_ids(n, 512, seed);
}

/// Lets the session read n tokens, and returns all their rows.
inline std::shared_ptr<const KvPrefix> read_with_rows(Session& session, int n) {
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = tokens(n);
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  return prefill.take_prefix();
}

}  // namespace snapkv
