// SPDX-License-Identifier: MIT
#include "huggingface/tensor_edits.h"

#include <utility>

namespace snapkv::huggingface {

Tensor half_of(const Tensor& t, Edit edit) {
  const int64_t n = t.shape[0];
  if (edit == Edit::first_half) return t.slice(0, n / 2);
  return edit == Edit::second_half ? t.slice(n / 2, n) : t;
}

std::vector<int64_t> gguf_shape(const Config& config, int64_t il, std::vector<int64_t> shape,
                                Edit edit) {
  const bool of_pairs = edit == Edit::gate_of_pairs || edit == Edit::up_of_pairs ||
                        edit == Edit::gate_of_halves || edit == Edit::up_of_halves;
  if (edit == Edit::grouped_qkv) shape[0] = config.linear.n_qkv();
  if (edit == Edit::grouped_gate) shape[0] = config.linear.n_values();
  if (edit == Edit::queries_of_groups) shape[0] = config.size(Size::q, il);
  if (edit == Edit::keys_of_groups || edit == Edit::values_of_groups)
    shape[0] = config.size(Size::kv, il);
  const LatentSizes& latent = config.latent;
  if (edit == Edit::head_keys) return {config.n_head, latent.rank, latent.n_own};
  if (edit == Edit::head_values) return {config.n_head, latent.n_value, latent.rank};
  if (edit == Edit::taps) return {shape[0], 1, shape[1]};
  if (edit == Edit::flattened) return {shape[0] * shape[1]};
  if (of_pairs) shape.back() /= 2;
  if ((of_pairs || edit == Edit::transposed) && shape.size() == 3) std::swap(shape[1], shape[2]);
  if (edit == Edit::transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
  return shape;
}

bool is_strided(Edit edit) {
  return edit == Edit::head_keys || edit == Edit::head_values || edit == Edit::transposed ||
         edit == Edit::gate_of_pairs || edit == Edit::up_of_pairs || edit == Edit::gate_of_halves ||
         edit == Edit::up_of_halves;
}

Strides strides_of(const Config& config, const std::vector<int64_t>& shape, Edit edit) {
  const int64_t n = shape.back();
  if (edit == Edit::head_keys || edit == Edit::head_values) {  // n: LatentSizes::rank
    const int64_t n_own = config.latent.n_own, n_value = config.latent.n_value;
    const int64_t matrix = (n_own + n_value) * n;
    if (edit == Edit::head_keys) return {.n_rows = n, .matrix = matrix, .row = 1, .column = n};
    return {.n_rows = n_value, .matrix = matrix, .row = n, .start = n_own * n};
  }
  if (edit == Edit::gate_of_halves || edit == Edit::up_of_halves) {
    return {.n_rows = n / 2,
            .matrix = shape[1] * n,
            .row = 1,
            .column = n,
            .start = edit == Edit::up_of_halves ? n / 2 : 0};
  }
  if (edit == Edit::transposed && shape.size() == 2) {
    return {.n_rows = n, .row = 1, .column = n};
  }
  const int64_t start = edit == Edit::up_of_pairs ? 1 : 0;
  const int64_t step = edit == Edit::transposed ? 1 : 2;
  if (shape.size() == 2) {  // vectors
    return {.n_rows = 1, .matrix = n, .column = step, .start = start};
  }
  return {.n_rows = n / step, .matrix = shape[1] * n, .row = step, .column = n, .start = start};
}

}  // namespace snapkv::huggingface
