// SPDX-License-Identifier: MIT
// PromptReader: reads prompts into sessions in the way that a run asks for (knowing the question,
// before the question, or from stored rows). It reads text that successive prompts share only once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/common/runner.h"
#include "eval/common/temporary_folder.h"
#include "snapkv/prefill.h"

namespace snapkv::eval {

class PromptReader {
 public:
  /// `run` must outlive this.
  explicit PromptReader(const RunOptions& run) : run_(run) {}

  /// Reads a prompt into empty sessions. `keeps`: another prompt with the same beginning will
  /// follow, and the shared part is kept for it: the rows as they were computed, or the compressed
  /// context of each configuration, in a temporary file. What the sessions hold does not depend on
  /// this. Throws what sessions and KvPrefix throw.
  void read(std::span<Session* const> sessions, const Prompt& prompt, bool keeps);
  /// Releases what was kept.
  void forget();

 private:
  // A context, compressed by one configuration.
  struct Compressed {
    TemporaryFolder folder;
    std::unique_ptr<SavedSessionFile> file;
  };

  void read_aware(std::span<Session* const> sessions, std::span<const int32_t> tokens, bool keeps);
  void read_stored(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                   int64_t n_context, bool keeps);
  void read_agnostic(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                     int64_t n_context, bool keeps);
  void compress_context(std::span<Session* const> sessions, std::span<const int32_t> context,
                        bool keeps);

  const RunOptions& run_;
  std::shared_ptr<const KvPrefix> prefix_;    // of the last prompt (aware) or context (stored)
  std::vector<int32_t> context_;              // agnostic: the compressed context
  std::map<std::string, Compressed> states_;  // agnostic: by configuration
};

}  // namespace snapkv::eval
