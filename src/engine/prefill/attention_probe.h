// SPDX-License-Identifier: MIT
// ProbeObserver: collects what an AttentionProbe (snapkv/engine.h) asks for, layer by layer, while
// a prompt is read.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/policy.h"
#include "snapkv/engine.h"

namespace snapkv {

class ProbeObserver {
 public:
  /// For a prompt of n_tokens whose first token is at `first_pos`. Throws kUsage naming a range
  /// that is not within the prompt.
  ProbeObserver(const AttentionProbe& probe, int64_t n_tokens, int64_t first_pos);

  /// The first token of the prompt whose query is needed, or n_tokens if there is none.
  int64_t first_token() const;
  void begin_layer(int il);
  /// Reports every range that ends in this chunk.
  void observe(Backend& backend, const QueryChunk& chunk);

 private:
  /// One range of the current layer. Its queries are summed in pieces counted from the start of the
  /// range, however the prompt is divided into chunks.
  struct Gathered {
    int64_t n_done = 0;     // queries that are in `sums`
    int64_t n_pending = 0;  // queries that are in `queries`
    Buffer queries;         // [n_head_kv, piece, n_group, head_dim] f32
    int64_t n_keys = 0;
    std::vector<double> sums;  // [n_head, n_keys], empty before the first piece
  };
  void gather(Backend& backend, const QueryChunk& chunk, size_t range);
  void keep_queries(Backend& backend, const QueryChunk& chunk, int64_t first, int64_t n,
                    int64_t piece, Gathered& gathered) const;
  void add_piece(Backend& backend, const QueryChunk& chunk, size_t range);
  void report(size_t range);

  const AttentionProbe& probe_;
  const int64_t n_tokens_;
  const int64_t first_pos_;
  int il_ = 0;
  std::vector<Gathered> gathered_;  // [ranges]
};

}  // namespace snapkv
