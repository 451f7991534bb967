// SPDX-License-Identifier: MIT
// Prefill: reads prompts step by step, for programs that serve several sessions at once: between
// two steps other sessions of the model may decode.
//
//   snapkv::Prefill prefill(session, tokens);
//   while (!prefill.step()) snapkv::decode_batch(others, next_tokens);
//
// KvPrefix: the keys and values of the beginning of a prompt as they were computed, uncompressed.
// Prompts that begin alike read only what differs (PrefillOptions::prefix); each still selects what
// it keeps with its own window, so that its answer is what it would be without the prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv {

/// Immutable; may be used by several sessions at once.
class KvPrefix {
 public:
  ~KvPrefix();
  KvPrefix(const KvPrefix&) = delete;
  KvPrefix& operator=(const KvPrefix&) = delete;

  std::span<const int32_t> tokens() const;
  /// Of the keys, values and positions, as they are used.
  size_t bytes() const;
  /// Of the one layer that is decoded while a prompt uses it, beside them: 0 but for a file with
  /// zstd.
  size_t decoded_bytes() const;
  /// What a prefix of n_tokens takes in sessions of these options: every row of every layer, in
  /// the type of prefill's scratch layer.
  static size_t bytes_for(const ModelInfo& info, const SessionOptions& options, int64_t n_tokens);

  /// Writes the rows in `type`, of which q8_0 takes half the bytes of f16, to a file that appears
  /// under its name when it is whole (docs/session-file.md). `notes`: whatever the program wants
  /// back. `zstd_level` as in Session::save(). Throws kUsage for other types than a cache may have
  /// and on a GPU, kRuntime when the file can't be written.
  void save(const std::string& path, DType type, std::string_view notes = {},
            int zstd_level = 0) const;
  /// Maps such a file, which must stay as it is while the prefix lives; a layer is read, and its
  /// checksum compared, when a prompt uses it for the first time. Rows are converted as they are
  /// used, those of a file with zstd decoded each time. Throws kRuntime
  /// when the file can't be read, kBadModel naming the field when it is no such file or damaged,
  /// kUsage when it is of another model.
  static std::shared_ptr<const KvPrefix> load(std::shared_ptr<const Model> model,
                                              const std::string& path);

  struct Impl;  ///< the engine's own
  explicit KvPrefix(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// The smallest type that rows of documents may be stored in, of which answers hardly notice the
/// rounding (docs/quality.md): q8_0, or f16 where head_dim does not have whole blocks of it.
DType stored_kv_type(const ModelInfo& info);

/// What a file of KvPrefix::save() says of itself.
struct SavedPrefix {
  uint64_t fingerprint = 0;  ///< Model::fingerprint()
  std::string model;         ///< ModelInfo::name, for people
  std::string notes;
  int64_t n_ctx = 0;  ///< of the session that read it; some models rotate by it
  DType type = DType::f16;
  std::vector<int32_t> tokens;
};
/// Whether a file begins as those of KvPrefix::save() do. Throws kRuntime when it can't be read.
bool is_prefix_file(const std::string& path);
/// Reads and checks all but the rows. Throws as KvPrefix::load().
SavedPrefix describe_prefix(const std::string& path);

/// One prompt of a Prefill.
struct PrefillPrompt {
  /// One session, or several that have seen nothing: as of prefill_many().
  std::vector<Session*> sessions;
  std::vector<int32_t> tokens;
  PrefillOptions options = {};
  /// Whether all rows of the prompt are kept beside what its sessions keep: Prefill::take_prefix().
  /// For sessions that have seen nothing.
  bool makes_prefix = false;
};

class Prefill {
 public:
  /// Reads nothing yet. Throws as prefill_many().
  explicit Prefill(PrefillPrompt prompt);
  /// Several prompts, computed together: weights are read once for all. Their tokens must not
  /// exceed one chunk, and may_share() must hold; else kUsage.
  explicit Prefill(std::vector<PrefillPrompt> prompts);
  /// Where the prompts were not read to their end, the sessions are as they were.
  ~Prefill();
  Prefill(Prefill&&) noexcept;
  Prefill& operator=(Prefill&&) noexcept;

  /// Whether these prompts can be computed together, with the results that each has alone. Throws
  /// kUsage where a session is null or was moved from.
  static bool may_share(std::span<const PrefillPrompt> prompts);

  /// Computes one chunk in one layer. True when the prompts have been read: their sessions then
  /// hold them. While it is false the sessions take no other call. Throws as Session::prefill(),
  /// after which the sessions are as they were and only the destructor may be called. A session
  /// that is destroyed, or assigned to, before the end takes no result.
  bool step();
  /// Of the work, from 0 to 1. Throws kUsage where this was moved from, as take_prefix() does.
  double fraction() const;
  /// What PrefillPrompt::makes_prefix asked for of the i-th prompt, once step() was true; else
  /// null. Throws kUsage where there is no such prompt.
  std::shared_ptr<const KvPrefix> take_prefix(size_t i = 0);

 private:
  struct Impl;
  Impl& state() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace snapkv
