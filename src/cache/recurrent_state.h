// SPDX-License-Identifier: MIT
// RecurrentState: what a layer remembers of a sequence in a fixed number of f32 values, however
// long the sequence is, in place of rows or beside them. They say nothing about earlier tokens, so
// the state can be cut only where marks were set: copies of what it was after some number of
// tokens.
#pragma once

#include <memory>
#include <vector>

#include "base/buffer.h"
#include "cache/layer_state.h"

namespace snapkv {

class RecurrentState final : public LayerState {
 public:
  RecurrentState(KvMeter& meter, const StateShape& shape)
      : meter_(meter), n_values_(shape.n_recurrent) {}
  ~RecurrentState() override;

  std::string_view kind() const override { return "recur"; }
  RecurrentState* as_recurrent() override { return this; }
  using LayerState::as_recurrent;

  /// Allocates the state of an empty sequence, unless there is one.
  void reserve(Backend& backend, int32_t n, int32_t step) override;
  int64_t last_cut(int64_t n) const override;

  // ---- a step: an op reads now() and writes next(), of n_values() f32 each; then advance()
  int64_t n_values() const { return n_values_; }
  /// Tokens that it has seen.
  int64_t n_tokens() const { return n_tokens_; }
  const void* now() const { return place(now_); }
  void* next() const { return place(1 - now_); }
  void advance(int64_t n_tokens);

  // ---- marks
  /// Makes memory for what the state is after n tokens, more than at the marks before; the caller
  /// fills it.
  void* add_mark(Backend& backend, int64_t n);
  /// Memory of the mark after n tokens.
  void* mark(int64_t n) const;
  /// The tokens after which there are marks, ascending.
  std::vector<int64_t> marks() const;
  /// Adds the mark of `other` after n tokens, whose memory both then have; a borrowed one is
  /// copied.
  void share_mark(Backend& backend, const RecurrentState& other, int64_t n);
  /// The addresses of the marks' memory, of mark_bytes() each.
  std::vector<const void*> mark_memory() const;
  /// Becomes what `other` was after n tokens, which must be 0 or a cut of it.
  void restore(Backend& backend, const RecurrentState& other, int64_t n);
  /// Becomes what `other`, which has begun, is now, without its marks.
  void copy_now(Backend& backend, const RecurrentState& other);
  /// Becomes what `other` is, of this shape and with this meter, by taking over its memory and
  /// marks. Does not fail.
  void take(RecurrentState& other);

  /// Undoes one step.
  void snapshot() override;
  void roll_back() override;
  bool keep_first(int32_t) override { return false; }

  /// The marks and, unless one of them is after as many tokens, the state as it is now.
  void save(Backend& backend, const ByteSink& out) const override;
  size_t saved_bytes() const override;
  size_t most_saved_bytes(int64_t n) const override;
  void load(Backend& backend, const SavedState& saved, int64_t reserve) override;
  void borrow(const SavedState& saved) override;

  size_t bytes() const override { return storage_.bytes(); }
  size_t bytes_used() const override { return storage_.bytes(); }
  /// Bytes of a mark.
  size_t mark_bytes() const { return n_values_ * sizeof(float); }

  /// Marks are at least as many tokens apart, but for the last ones.
  static constexpr int64_t kLeastMarkDistance = 64;
  /// The most marks of n tokens.
  static int64_t most_marks(int64_t n) { return n / kLeastMarkDistance + 5; }

 private:
  struct Mark {
    int64_t n_tokens = 0;
    std::shared_ptr<Buffer> values;  // never changed once other states have it
  };
  void* place(int i) const {
    return static_cast<char*>(storage_.data()) + i * n_values_ * sizeof(float);
  }
  const Mark* find(int64_t n) const;
  /// What save() writes, in order: tokens, and where the values are.
  std::vector<std::pair<int64_t, const void*>> saved_places() const;

  KvMeter& meter_;
  const int64_t n_values_;
  Buffer storage_;      // the state before and after the last step
  bool begun_ = false;  // whether there is a state, be it one of no values
  int now_ = 0;
  int64_t n_tokens_ = 0;
  int saved_now_ = 0;  // of the snapshot
  int64_t saved_n_tokens_ = 0;
  int n_steps_ = 0;          // since the snapshot
  std::vector<Mark> marks_;  // ascending
};

}  // namespace snapkv
