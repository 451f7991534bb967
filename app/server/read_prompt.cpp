// SPDX-License-Identifier: MIT
#include "server/read_prompt.h"

#include <fmt/core.h>

#include "base/hash.h"
#include "snapkv/engine.h"

namespace snapkv::server {
namespace {

constexpr const char* kPromptKind = "snapkv-prompt ";

}  // namespace

std::string prompt_notes(std::span<const int32_t> tokens) {
  Hash64 hash;
  hash.add(std::as_bytes(tokens));
  return fmt::format("{}{:016x}", kPromptKind, hash.value());
}

bool is_prompt_notes(const std::string& notes) { return notes.starts_with(kPromptKind); }

std::string prompt_problem(const SavedSessionFile& file, std::span<const int32_t> tokens) {
  const SavedSession& saved = file.saved();
  if (saved.n_past != std::ssize(tokens)) {
    return fmt::format("it has {} tokens, and the request's prompt {}", saved.n_past,
                       tokens.size());
  }
  if (saved.notes != prompt_notes(tokens)) return "it is another prompt than the request's";
  return "";
}

}  // namespace snapkv::server
