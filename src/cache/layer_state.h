// SPDX-License-Identifier: MIT
// LayerState: what one layer remembers of the tokens that it has seen. Sessions and files know only
// this interface; make_state() makes the kind that a layer needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/tensor.h"
#include "cache/selection.h"

namespace snapkv {

/// The most rows of a layer: rows and their positions are 32-bit numbers.
inline constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

/// Bytes of KV memory of one session: current and peak.
struct KvMeter {
  size_t now = 0;
  size_t peak = 0;
  void add(size_t bytes) {
    now += bytes;
    if (now > peak) peak = now;
  }
  void remove(size_t bytes) { now -= bytes; }
};

/// The form of a layer's states, which the model's header determines. A new kind of state is a
/// field here, a class, and a line in make_state().
struct StateShape {
  int64_t n_head = 0;      // KV heads
  int64_t head_dim_k = 0;  // of a key
  int64_t head_dim_v = 0;  // of a value
  int64_t window = 0;      // of a sliding window: the number of last tokens that are seen; 0: all
  int64_t chunk = 0;       // of attention in chunks: a token sees those of its chunk; 0: no chunks
  /// Whether values are the last head_dim_v values of the keys, and so are not stored themselves.
  bool v_in_k = false;

  /// Values (f32) of a state that does not grow with the tokens, in place of rows or beside them. 0
  /// without rows: a layer that computes each token by itself.
  int64_t n_recurrent = 0;

  /// Whether the rows are those of an earlier layer. The fields above then say what these are, and
  /// a state of this shape holds nothing.
  bool shared = false;

  bool has_rows() const { return n_head > 0 && !shared; }
  bool has_recurrent() const { return (n_recurrent > 0 || n_head == 0) && !shared; }
  /// Bytes of a state of n tokens, each of which has a row in every head.
  size_t bytes(DType dtype, int64_t n) const;
  /// By how many bytes a state grows with each token.
  size_t bytes_per_token(DType dtype) const { return bytes(dtype, 1) - bytes(dtype, 0); }
  bool operator==(const StateShape&) const = default;
};

/// Takes the next bytes of a state that is being saved.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// The content of a state's block in a file (docs/session-file.md).
struct SavedState {
  std::span<const std::byte> bytes;  // in host memory, aligned as a Buffer
  int64_t n_tokens = 0;              // tokens seen; the last one's position is one less
  std::string name;                  // file and layer, for messages: "'a.kv': layer 3"
};

class RecurrentState;
class RowState;

/// What every kind of state has. Its kind says what else: RowState has the rows that attention
/// sees. A layer may have both kinds of state in one (join_states).
class LayerState {
 public:
  static constexpr const char* kLabel = "KV cache";  ///< of the memory of all kinds

  LayerState() = default;
  LayerState(const LayerState&) = delete;
  LayerState& operator=(const LayerState&) = delete;
  virtual ~LayerState() = default;

  /// The name of its kind in files, at most 8 letters.
  virtual std::string_view kind() const = 0;
  /// This state, or its part, that is of that kind; nullptr if there is none.
  virtual RecurrentState* as_recurrent() { return nullptr; }
  const RecurrentState* as_recurrent() const {
    return const_cast<LayerState*>(this)->as_recurrent();
  }
  virtual RowState* as_rows() { return nullptr; }
  const RowState* as_rows() const { return const_cast<LayerState*>(this)->as_rows(); }
  /// The same for a layer that must have rows.
  RowState& rows();
  const RowState& rows() const { return const_cast<LayerState*>(this)->rows(); }

  /// Makes room for n more tokens; if it has to grow, then for at least `step` of them.
  virtual void reserve(Backend& backend, int32_t n, int32_t step) = 0;
  /// Where it can be cut: the largest number of first tokens, at most n of them, after which it
  /// still knows what it was. 0: it knows nothing but its beginning.
  virtual int64_t last_cut(int64_t n) const = 0;

  // ---- undo
  /// roll_back() forgets the tokens that were appended since the last snapshot(), or all of them if
  /// there was none. Neither fails nor allocates.
  virtual void snapshot() = 0;
  virtual void roll_back() = 0;
  /// Of the tokens that were appended since the last snapshot(), forgets all but the first n.
  /// False, and nothing has changed, if it cannot: roll_back() forgets all of them. Neither fails
  /// nor allocates.
  virtual bool keep_first(int32_t n) = 0;

  // ---- files
  /// Gives a sink the content of the state's block, which has saved_bytes().
  virtual void save(Backend& backend, const ByteSink& out) const = 0;
  virtual size_t saved_bytes() const = 0;
  /// The most bytes that save() makes of n tokens.
  virtual size_t most_saved_bytes(int64_t n) const = 0;
  /// Fills this empty state with a copy of a saved one, and room for `reserve` more tokens. Throws
  /// Error{kBadModel} naming what differs unless that has this state's form and type, and positions
  /// that ascend up to the last token's.
  virtual void load(Backend& backend, const SavedState& saved, int64_t reserve) = 0;
  /// The same without a copy: this state reads the bytes where they are, which must outlive it, and
  /// cannot grow.
  virtual void borrow(const SavedState& saved) = 0;

  // ---- memory
  /// leave() says that the state will not be read for a while, prefetch() that it soon will be. A
  /// state in a file (make_full_state) then leaves the resident memory or is read ahead.
  virtual void leave() const {}
  virtual void prefetch() const {}
  virtual size_t bytes() const = 0;
  virtual size_t bytes_used() const = 0;
};

/// Rows [n_head, capacity, d] without the first n of each head.
inline Tensor rows_from(const Tensor& rows, int64_t n) {
  SNAPKV_DCHECK(0 <= n && n <= rows.shape[1]);
  Tensor rest = rows;
  rest.data = static_cast<char*>(rows.data) + n * rows.stride[1];
  rest.shape[1] -= n;
  return rest;
}

/// The state of a layer with attention and rows of its own: for each KV head the rows (keys, values
/// and positions) that tokens have left. Policies choose among them.
class RowState : public LayerState {
 public:
  using LayerState::as_rows;
  RowState* as_rows() override { return this; }
  int64_t last_cut(int64_t n) const override { return n; }  // each row is a token's

  // ---- tokens
  /// Appends n tokens: k [n, n_head, head_dim_k] f32 (after RoPE), v [n, n_head, head_dim_v] f32
  /// (not read with StateShape::v_in_k), and their true positions [n]. There must be room.
  virtual void append(Backend& backend, const Tensor& k, const Tensor& v,
                      std::span<const int32_t> pos) = 0;
  /// Appends rows of `other`, converted to this type: in each head h at most `most` of them, from
  /// row first[h] on (from row 0 on if `first` is empty). There must be room.
  virtual void append(Backend& backend, const RowState& other, std::span<const int32_t> first,
                      int64_t most) = 0;
  void append(Backend& backend, const RowState& other) { append(backend, other, {}, kMostRows); }
  /// Forgets everything, so that a layer of this shape can use the memory. Returns false, and
  /// changes nothing, if that has no room for n tokens of such a layer.
  virtual bool reuse(const StateShape& shape, int64_t n) = 0;

  // ---- what attention and policies read; views are made once per layer, not per row
  /// Number of rows of each head.
  virtual std::vector<int32_t> n_rows() const = 0;
  /// The largest of them.
  int32_t most_rows() const;
  /// Adds the rows of each head that the last token sees or, of the tokens that were appended since
  /// the last snapshot(), the one that n_later others have followed.
  virtual void visible_rows(std::vector<HeadRows>& heads, int32_t n_later = 0) const = 0;
  /// True positions of the rows of a head, ascending.
  virtual std::vector<int32_t> positions(Backend& backend, int head) const = 0;
  /// Whether policies can read it: its type is not quantized, and all heads have the same capacity.
  virtual bool has_views() const = 0;
  struct Views {
    /// [n_head, capacity, head_dim_k] and [n_head, capacity, head_dim_v]. With StateShape::v_in_k,
    /// v is a part of k's rows.
    Tensor k, v;
  };
  /// Copies nothing. has_views() must hold.
  virtual Views views() const = 0;

  // ---- compression
  /// Fills this empty state with what its kind of layer keeps of `all`, and room for `reserve` more
  /// tokens: the selected rows or, in layers where no policy chooses, what later tokens can see.
  virtual void keep(Backend& backend, const RowState& all, const Selection& selection,
                    int32_t reserve) = 0;
  /// Fills this empty state with everything that `all` remembers by taking over its memory, with
  /// its snapshot. Returns false, and changes nothing, if `all` has another type or room for more
  /// than n rows in a head.
  virtual bool take(RowState& all, int64_t n) = 0;
  /// Forgets everything and frees the memory.
  virtual void clear() = 0;

  virtual std::span<const std::byte> memory() const = 0;
  size_t bytes() const override { return memory().size(); }
};

/// An empty state for a session's layer. `meter` counts its memory and must outlive it.
std::unique_ptr<LayerState> make_state(const StateShape& shape, KvMeter& meter, DType dtype);
/// A state of both parts, or the only one if the other is null.
std::unique_ptr<LayerState> join_states(std::unique_ptr<RowState> rows,
                                        std::unique_ptr<RecurrentState> recurrent);
/// An empty state that has a row for every token of such a layer, for prompts and for what is kept
/// of them beside a session. Unless `spill_dir` is empty, it is in an unnamed file in that folder
/// (make_file_buffer), which works only with backends on host memory.
std::unique_ptr<RowState> make_full_state(const StateShape& shape, KvMeter& meter, DType dtype,
                                          std::string spill_dir = {});

}  // namespace snapkv
