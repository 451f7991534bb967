// SPDX-License-Identifier: MIT
// Prefill: reads prompts step by step, for programs that serve several sessions at once: other
// sessions of the model may decode between two steps.
//
//   snapkv::Prefill prefill(session, tokens);
//   while (!prefill.step()) snapkv::decode_batch(others, next_tokens);
//
// KvPrefix: the uncompressed keys and values of a prompt's beginning. Prompts with the same
// beginning read only what differs (PrefillOptions::prefix). Each still selects what it keeps with
// its own window, so its answer is the same as without the prefix.
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

/// Immutable; several sessions may use it at once.
class KvPrefix {
 public:
  ~KvPrefix();
  KvPrefix(const KvPrefix&) = delete;
  KvPrefix& operator=(const KvPrefix&) = delete;

  std::span<const int32_t> tokens() const;
  /// The most of its first n tokens that a prompt can take over. That is n unless the model has
  /// layers whose state can be cut only where it was set aside: at the ends of the prompts that
  /// were read and of their messages, and every few thousand tokens. 0: none.
  int64_t last_cut(int64_t n) const;
  /// Size of the keys, values and positions, in the form in which prompts use them. Rows that it
  /// shares with other prefixes are included.
  size_t bytes() const;
  /// Size of several prefixes together: rows that they share are counted once.
  static size_t bytes(std::span<const KvPrefix* const> prefixes);
  /// Rows that a prefix which begins with the first `n_tokens` of this one shares with it. It
  /// copies those of the other tokens among them.
  struct Shared {
    int64_t n_tokens = 0;
    size_t bytes = 0;  ///< may be those of a few more tokens
  };
  Shared shared(int64_t n_tokens) const;
  /// Size of a prefix of n_tokens in sessions with these options: every row of every layer, in the
  /// type of prefill's scratch layer.
  static size_t bytes_for(const ModelInfo& info, const SessionOptions& options, int64_t n_tokens);

  /// Writes the rows in `type` (q8_0 takes half the bytes of f16) to a file that appears under its
  /// name only when it is complete (docs/session-file.md). `notes`: anything that the program wants
  /// back. `n_tokens`: only the rows of the first tokens, such as those of a document without its
  /// question; 0: all. Throws kUsage for types that a cache cannot have, for more tokens than there
  /// are, and on a GPU, kRuntime if the file cannot be written.
  void save(const std::string& path, DType type, std::string_view notes = {},
            int64_t n_tokens = 0) const;
  /// Maps such a file, which must not change while the prefix lives. A layer is read, and its
  /// checksum compared, when a prompt uses it for the first time. Rows are converted when they are
  /// used. Throws kRuntime if the file cannot be read, kBadModel naming the field if it is not such
  /// a file or is damaged, kUsage if it belongs to another model.
  static std::shared_ptr<const KvPrefix> load(std::shared_ptr<const Model> model,
                                              const std::string& path);
  /// The same for a file's content in memory: its rows are read where they are.
  static std::shared_ptr<const KvPrefix> load(std::shared_ptr<const Model> model,
                                              const LentFile& file);

  struct Impl;  ///< private to the engine
  explicit KvPrefix(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// The smallest type for storing the rows of documents whose rounding hardly affects answers
/// (docs/quality.md): q8_0, or f16 if head_dim is not a whole number of its blocks.
DType stored_kv_type(const ModelInfo& info);

/// The header of a file of KvPrefix::save().
struct SavedPrefix : SavedCache {
  std::vector<int32_t> tokens;
};
/// Whether a file begins like those of KvPrefix::save(). Throws kRuntime if it cannot be read,
/// kBadModel if another version of snapkv has written it.
bool is_prefix_file(const std::string& path);
bool is_prefix_file(const LentFile& file);
/// Whether a file begins like those of KvPrefix::save() or Session::save(), perhaps of another
/// version of snapkv. Throws kRuntime if it cannot be read.
bool is_cache_file(const std::string& path);
/// Reads and checks everything except the rows. Throws as KvPrefix::load() does.
SavedPrefix describe_prefix(const std::string& path);
SavedPrefix describe_prefix(const LentFile& file);

/// One prompt of a Prefill.
struct PrefillPrompt {
  /// One session, or several that have seen nothing, as for prefill_many().
  std::vector<Session*> sessions;
  std::vector<int32_t> tokens;
  PrefillOptions options = {};
  /// Whether to keep all rows of the prompt, in addition to what its sessions keep, for
  /// Prefill::take_prefix(). For sessions that have seen nothing.
  bool makes_prefix = false;
};

/// Reads `tokens` after those of a prefix, whose rows are taken from it, into a session that has
/// seen nothing: a question about a document. Where there are fewer tokens than the policy's window
/// needs, the last ones of the prefix are read again. Throws as Session::prefill() with
/// PrefillOptions::prefix.
void prefill_after(Session& session, std::shared_ptr<const KvPrefix> prefix,
                   std::span<const int32_t> tokens, const ProgressFn& progress = {});

class Prefill {
 public:
  /// Reads nothing yet. Throws as prefill_many() does.
  explicit Prefill(PrefillPrompt prompt);
  /// Several prompts that are computed together: weights are read once for all. Throws kUsage
  /// unless their tokens fit in one chunk and may_share() holds.
  explicit Prefill(std::vector<PrefillPrompt> prompts);
  /// If the prompts have not been read to their end, the sessions are as they were.
  ~Prefill();
  Prefill(Prefill&&) noexcept;
  Prefill& operator=(Prefill&&) noexcept;

  /// Whether these prompts can be computed together, each with the result that it has alone. Throws
  /// kUsage if a session is null or was moved from.
  static bool may_share(std::span<const PrefillPrompt> prompts);

  /// Computes one chunk of one layer. Returns true when the prompts have been read and their
  /// sessions have them; until then the sessions accept no other call. Throws as Session::prefill()
  /// does, after which the sessions are as they were and only the destructor may be called. A
  /// session that is destroyed, or assigned to, before the end receives no result.
  bool step();
  /// The fraction of the work that is done, 0 to 1. Throws kUsage if this was moved from, as
  /// take_prefix() does.
  double fraction() const;
  /// The prefix of the i-th prompt if it has PrefillPrompt::makes_prefix, once step() has returned
  /// true; otherwise null. Throws kUsage if there is no such prompt.
  std::shared_ptr<const KvPrefix> take_prefix(size_t i = 0);

 private:
  struct Impl;
  Impl& state() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace snapkv
