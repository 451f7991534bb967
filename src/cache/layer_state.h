// SPDX-License-Identifier: MIT
// LayerState: what one layer remembers of the tokens that it has seen. Engine, server and files know
// only this interface; make_state() makes the kind that a layer needs.
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

/// What a layer's states are like, as the model's header says. A new kind of state is a field here, a
/// class, and a line in make_state().
struct StateShape {
  int64_t n_head = 0;  // KV heads
  int64_t head_dim = 0;
  int64_t window = 0;  // if > 0, decoding sees the last tokens only, so many

  /// Bytes of a state with n_rows rows in each head.
  size_t bytes(DType dtype, int64_t n_rows) const;
};

/// Takes the next bytes of a state that is being saved.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// The content of a state's block in a file (docs/session-file.md).
struct SavedState {
  std::span<const std::byte> bytes;  // in host memory, aligned as a Buffer
  int64_t n_tokens = 0;              // tokens seen; the last one's position is one less
  std::string name;                  // file and layer, for messages: "'a.kv': layer 3"
};

class LayerState {
 public:
  LayerState() = default;
  LayerState(const LayerState&) = delete;
  LayerState& operator=(const LayerState&) = delete;
  virtual ~LayerState() = default;

  /// The name of its kind in files, of 8 letters at most.
  virtual std::string_view kind() const = 0;

  // ---- tokens
  /// Makes room for n more tokens; if it has to grow, then by at least `step` of them.
  virtual void reserve(Backend& backend, int32_t n, int32_t step) = 0;
  /// Appends n tokens: k, v [n, n_head, head_dim] f32 (after RoPE), and their true positions [n].
  /// There must be room.
  virtual void append(Backend& backend, const Tensor& k, const Tensor& v,
                      std::span<const int32_t> pos) = 0;
  /// Appends what `other` remembers, converted to this type: in each head h at most `most` rows from
  /// first[h] on, or from the first one on if `first` is empty. There must be room.
  virtual void append(Backend& backend, const LayerState& other, std::span<const int32_t> first,
                      int64_t most) = 0;
  void append(Backend& backend, const LayerState& other) { append(backend, other, {}, kMostRows); }
  /// Forgets all, for the prompt of a layer of this shape. Returns false, and changes nothing, if it
  /// has no room for n tokens of such a layer.
  virtual bool reuse(const StateShape& shape, int64_t n) = 0;

  // ---- what attention and policies read; views are made once per layer, not per row
  /// Number of rows of each head.
  virtual std::vector<int32_t> n_rows() const = 0;
  /// Adds the rows of each head that the next token sees.
  virtual void visible_rows(std::vector<HeadRows>& heads) const = 0;
  /// True positions of the rows of a head, ascending.
  virtual std::vector<int32_t> positions(Backend& backend, int head) const = 0;
  /// Whether policies can read it: its type is not quantized, and all heads have the same capacity.
  virtual bool has_views() const = 0;
  struct Views {
    Tensor k, v;  // [n_head, capacity, head_dim]
  };
  /// Throws away nothing and copies nothing; has_views() must hold.
  virtual Views views() const = 0;

  // ---- compression
  /// Becomes what this kind of layer keeps of `all`, with room for `reserve` more tokens: the
  /// selected rows or, if policies do not choose, what later tokens can see. It must be empty.
  virtual void keep(Backend& backend, const LayerState& all, const Selection& selection,
                    int32_t reserve) = 0;
  /// Takes the memory of `all`, if all of it is kept and it has this type and room for n rows in
  /// each head at most. Returns false, and changes nothing, if it has not.
  virtual bool take(LayerState& all, int64_t n) = 0;

  // ---- undo
  /// Remembers the tokens so far; roll_back() forgets those that were appended since. Neither fails
  /// nor allocates. Before the first snapshot there are none.
  virtual void snapshot() = 0;
  virtual void roll_back() = 0;

  // ---- files
  /// Gives a sink the content of the state's block.
  virtual void save(Backend& backend, const ByteSink& out) const = 0;
  /// The most bytes that save() makes of n tokens.
  virtual size_t most_saved_bytes(int64_t n) const = 0;
  /// Copies a saved state, with room for `reserve` more tokens. Throws Error{kBadModel} naming what
  /// differs unless it is of this kind, shape and type, and its positions ascend up to the last
  /// token's. It must be empty.
  virtual void load(Backend& backend, const SavedState& saved, int64_t reserve) = 0;
  /// Reads a saved state in host memory where it is; then it cannot grow, and is valid as long as
  /// the bytes. Throws as load() does.
  virtual void borrow(const SavedState& saved) = 0;

  // ---- memory
  /// leave() says that it will not be read for a while, prefetch() that it soon will be: one with a
  /// spill_dir then leaves the memory or is read ahead.
  virtual void leave() const = 0;
  virtual void prefetch() const = 0;
  virtual std::span<const std::byte> memory() const = 0;
  size_t bytes() const { return memory().size(); }
  virtual size_t bytes_used() const = 0;
};

/// An empty state for a session's layer. `meter` counts its memory and must outlive it.
std::unique_ptr<LayerState> make_state(const StateShape& shape, KvMeter& meter, DType dtype);
/// An empty state that remembers every token of such a layer, for prompts and for what is kept of
/// them beside a session. Unless `spill_dir` is empty, it is in an unnamed file in that folder
/// (make_file_buffer), which works only with backends on host memory.
std::unique_ptr<LayerState> make_full_state(const StateShape& shape, KvMeter& meter, DType dtype,
                                            std::string spill_dir = {});

}  // namespace snapkv
