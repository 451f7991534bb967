// SPDX-License-Identifier: MIT
// ChosenAttention: attention of queries to the rows that an indexer chooses for each of them
// (RowChoice): the scores of all rows that a query sees, the highest of these, and attention to
// their rows, which are read where they are, or from copies on devices that cannot do so.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/buffer.h"
#include "model/layer_pass.h"

namespace snapkv {

class ChosenAttention {
 public:
  static constexpr const char* kLabel = "chosen rows";

  struct Call {
    RowChoice choice;                // for each query; top_k is less than what any of them sees
    Tensor q;                        // [n, n_head, head_dim] f32
    std::span<const HeadRows> rows;  // [n]: what each query sees, of the only KV head
    DType kv_dtype = DType::f16;     // not quantized
    float scale = 1.0f;
    AttentionVariant variant = {};
    Tensor out;  // [n, n_head, value_dim] f32: of the last values of keys, which are the values
  };
  /// Memory grows when needed.
  void run(Backend& backend, const Call& call);

 private:
  /// Fills in chosen_ for queries [begin, end), which have the same rows.
  Tensor choose(Backend& backend, const Call& call, int64_t begin, int64_t end, int64_t n_columns);
  /// The outputs of queries [begin, end); chosen [end - begin, top_k].
  void attend(Backend& backend, const Call& call, int64_t begin, int64_t end, const Tensor& chosen);
  /// Points heads_ to copies of the chosen rows.
  void copy_rows(Backend& backend, const Call& call, int64_t begin, int64_t end,
                 const Tensor& chosen);
  /// A view of one of the buffers, which is made larger if it has to be.
  static Tensor room(Backend& backend, Buffer& buffer, DType dtype,
                     std::initializer_list<int64_t> shape);

  Buffer scores_;  // [n, columns] f32
  Buffer chosen_;  // [n, top_k] i32
  Buffer copies_;  // [n, top_k, head_dim] KV dtype
  std::vector<HeadRows> heads_;
};

}  // namespace snapkv
