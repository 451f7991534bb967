// SPDX-License-Identifier: MIT
// PromptReader: reads prompts into sessions as a run says - aware of the question, before it, or
// from stored rows - and reads once what prompts that follow each other share. Used by runner.cpp.
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

  /// Reads a prompt into sessions that have seen nothing. `keeps`: another prompt that begins like
  /// this one will follow, and what both share is to be kept for it: rows as they were computed, or
  /// the compressed context of each configuration, in a temporary file. The sessions hold what they
  /// would without. Throws what sessions and KvPrefix throw.
  void read(std::span<Session* const> sessions, const Prompt& prompt, bool keeps);
  /// Lets go of what was kept.
  void forget();

 private:
  // A context as one configuration compressed it.
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
  std::vector<int32_t> context_;              // agnostic: what was compressed
  std::map<std::string, Compressed> states_;  // agnostic: by configuration
};

}  // namespace snapkv::eval
