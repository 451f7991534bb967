// SPDX-License-Identifier: MIT
// KvPrefix::Impl: the uncompressed rows of a prompt's beginning, in all layers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/layer_state.h"
#include "cache/recurrent_state.h"
#include "engine/core/session_impl.h"
#include "engine/files/cache_file.h"
#include "format/mmap_file.h"
#include "snapkv/prefill.h"

namespace snapkv {

/// All rows of consecutive tokens of a prompt. Several prefixes may share them.
struct PrefixRows {
  int64_t n_tokens = 0;
  KvMeter meter;                                  // declared before the layers, which report to it
  std::vector<std::unique_ptr<RowState>> layers;  // [n_layer]; null where there are none
};

struct KvPrefix::Impl {
  std::shared_ptr<const Model> model;
  int64_t n_ctx = 0;  // of the session that read it; some models rotate keys by it
  std::vector<int32_t> tokens;
  DType type = DType::f16;  // scratch_dtype() or, of a file, any

  /// The first tokens of shared rows, or all of them.
  struct Part {
    std::shared_ptr<const PrefixRows> rows;
    int64_t n_tokens = 0;
  };
  std::vector<Part> parts;  // the tokens in order; empty if the rows are in a file
  KvMeter meter;            // declared before the states, which report to it
  /// [n_layer], null for a layer without a recurrent state: the marks of all tokens, whose memory
  /// other prefixes may share.
  std::vector<std::unique_ptr<RecurrentState>> states;

  struct File {
    File(MmapFile opened, const std::string& name);
    /// Calls `use` with layer il, which has this shape and is valid during the call.
    void with_layer(const StateShape& shape, int il,
                    const std::function<void(const LayerState&)>& use) const;
    MmapFile map;
    CacheFile blocks;  // its bytes are the map's
    SavedPrefix saved;
  };
  std::unique_ptr<const File> file;  // holds the rows; null if they are in memory

  static Backend& backend_of(const Model& model) { return *model.impl_->backend; }
  static const LayerSpec& layer_spec(const Model& model, int il) {
    return model.impl_->architecture->layer_spec(il);
  }
  /// Appends the rows of tokens [begin, end) of layer il to `layer`, which must have room. The
  /// first call for a layer of a file compares its checksum. Throws Error{kBadModel}.
  void append_to(RowState& layer, int il, int64_t begin, int64_t end) const;
  /// Makes `state`, of layer il, what it was after n tokens: last_cut(n).
  void restore(RecurrentState& state, int il, int64_t n) const;
  /// Calls `use` with the marks of layer il, which has a recurrent state.
  void with_marks(int il, const std::function<void(const RecurrentState&)>& use) const;
  /// The first layer with a recurrent state; -1: none has one. Marks are the same in all of them.
  int first_recurrent() const;
  /// Those of the marks that a prefix which begins with the first n_tokens shares: the last two,
  /// and of those before some that are far enough apart.
  std::vector<int64_t> shared_marks(int64_t n_tokens) const;
  /// Those of the parts that a prefix which begins with the first n_tokens shares. Rows of which it
  /// would use a smaller part than kLeastShared are not among them: it would keep all in memory.
  std::vector<Part> shared_parts(int64_t n_tokens) const;
};

/// Makes a prefix of a prompt while its layers are computed. The prompt may itself begin with a
/// prefix, of which the new one shares what it can: a conversation's next turn copies nothing.
class PrefixMaker {
 public:
  /// `session` has read nothing. `old` is null or has the first n_old of the tokens.
  PrefixMaker(const Session::Impl& session, std::span<const int32_t> tokens, const KvPrefix* old,
              int64_t n_old);

  /// Keeps the rows of layer il, which `computed` ends with. Called for each layer in order, before
  /// a policy selects.
  void keep_layer(int il, const RowState& computed);
  /// The same for a layer that reads the rows of another one.
  void skip_layer(int il);
  /// The same for a layer with a recurrent state, whose marks are taken; if it has rows too, call
  /// it after keep_layer().
  void keep_state(int il, RecurrentState& computed);
  std::shared_ptr<const KvPrefix> finish();

 private:
  RowState& add_layer(PrefixRows& rows, int il) const;
  void add_part(std::shared_ptr<PrefixRows> rows);

  Backend& backend_;
  const KvPrefix* old_;
  int64_t n_shared_ = 0;            // the first of the tokens, whose rows are shared
  std::vector<int64_t> old_marks_;  // the old prefix's that are shared
  std::unique_ptr<KvPrefix::Impl> making_;
  std::shared_ptr<PrefixRows> copied_;  // of the old prefix's other tokens; null if there are none
  std::shared_ptr<PrefixRows> own_;
};

/// After how many of a prompt's tokens recurrent states are set aside, ascending: at its end, at
/// the ends of messages, and every few thousand tokens. The first n_old tokens are known already.
std::vector<int64_t> choose_marks(const Model& model, DType kv_type,
                                  std::span<const int32_t> tokens, int64_t n_old);

/// Throws Error{kUsage} unless the session can begin with the first `n` tokens of `prefix`, which
/// must equal those of `tokens`.
void check_prefix(const KvPrefix& prefix, int64_t n, const Session::Impl& session,
                  std::span<const int32_t> tokens);

}  // namespace snapkv
