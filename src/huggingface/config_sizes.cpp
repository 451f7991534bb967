// SPDX-License-Identifier: MIT
// The sizes of a model's tensors, and which of the optional ones it has.
#include "huggingface/config.h"
#include "huggingface/mixture_config.h"

namespace snapkv::huggingface {

int64_t Config::size(Size which) const {
  switch (which) {
    case Size::none:
      return 0;
    case Size::one:
      return 1;
    case Size::layer_input:
      return gemma4.n_layer_input + gemma3n.n_layer_input;  // one of them is 0
    case Size::layer_inputs:
      return n_layer * size(Size::layer_input);
    case Size::streams:
      return gemma3n.n_streams;
    case Size::streams_squared:
      return gemma3n.n_streams * gemma3n.n_streams;
    case Size::low_rank:
      return gemma3n.rank;
    case Size::embd:
      return n_embd;
    case Size::embd_thrice:
      return 3 * n_embd;
    case Size::kernel:
      return conv_kernel;
    case Size::context:
      return n_ctx;
    case Size::ff:
      return n_ff;
    case Size::ff_dense:
      return n_ff_dense;
    case Size::ff_adjugate:
      return remote.n_ff_adjugate;
    case Size::ff_shared:
      return n_ff_shared;
    case Size::ff_shared_twice:
      return 2 * n_ff_shared;
    case Size::ff_twice:
      return 2 * n_ff;
    case Size::head:
      return n_head;
    case Size::head_kv:
      return n_head_kv;
    case Size::head_dim:
      return head_dim;
    case Size::q:
      return n_head * head_dim;
    case Size::kv:
      return n_head_kv * head_dim;
    case Size::kv_twice:
      return 2 * n_head_kv * head_dim;
    case Size::values:
      return n_head_kv * (mixture.value_dim > 0 ? mixture.value_dim : head_dim);
    case Size::attended:
      return n_head * (mixture.value_dim > 0 ? mixture.value_dim : head_dim);
    case Size::out_gates:
      return mixture.gates_values ? n_head * head_dim : n_head;
    case Size::qkv:
      return (n_head + 2 * n_head_kv) * head_dim;
    case Size::vocab:
      return n_vocab;
    case Size::expert:
      return n_expert;
    case Size::q_and_gate:
      return 2 * n_head * head_dim;
    case Size::linear_head:
      return linear.n_head;
    case Size::linear_head_twice:
      return 2 * linear.n_head;
    case Size::linear_value:
      return linear.d_v;
    case Size::linear_values:
      return linear.n_values();
    case Size::linear_qkv:
      return linear.n_qkv();
    case Size::linear_qkv_and_gate:
      return linear.n_qkv() + linear.n_values();
    case Size::scan_in:
      return mamba2.n_values() + mamba2.n_xbc() + mamba2.n_head;
    case Size::scan_values:
      return mamba2.n_values();
    case Size::scan_xbc:
      return mamba2.n_xbc();
    case Size::scan_head:
      return mamba2.n_head;
    case Size::scan_group:
      return mamba2.n_group;
    case Size::scan_group_values:
      return mamba2.n_values() / mamba2.n_group;
    case Size::mamba_channels:
      return mamba.n_channel;
    case Size::mamba_channels_twice:
      return 2 * mamba.n_channel;
    case Size::mamba_state:
      return mamba.d_state;
    case Size::mamba_rank:
      return mamba.step_rank;
    case Size::mamba_inputs:
      return mamba.step_rank + 2 * mamba.d_state;
    case Size::mamba_head:
      return remote.n_mamba_head;
    case Size::rwkv_head:
      return n_embd / rwkv.head_dim;
    case Size::rwkv_value:
      return rwkv.head_dim;
    case Size::rwkv_key:
      return rwkv.n_head_kv * rwkv.head_dim;
    case Size::rwkv_mix:
      return rwkv.n_mix;
    case Size::rwkv_mix_rank:
      return rwkv.mix_rank;
    case Size::rwkv_mix_ranks:
      return rwkv.n_mix * rwkv.mix_rank;
    case Size::rwkv_decay:
      return rwkv.decay_rank;
    case Size::rwkv_rate:
      return rwkv.rate_rank;
    case Size::rwkv_first:
      return rwkv.first_rank;
    case Size::rwkv_gate:
      return rwkv.gate_rank;
    case Size::latent:
      return n_latent > 0 ? n_latent : n_embd;
    case Size::latent_rank:
      return latent.rank;
    case Size::latent_q_rank:
      return latent.q_rank;
    case Size::latent_row:
      return latent.rank + latent.n_shared;
    case Size::latent_heads:
      return n_head * (latent.n_own + latent.n_value);
    case Size::latent_q:
    case Size::mixer_q:
      return n_head * latent.n_key();
    case Size::mixer_values:
      return n_head * latent.n_value;
    case Size::index_head:
      return latent.n_index_head;
    case Size::index_key:
      return latent.index_key;
    case Size::index_q:
      return latent.n_index_head * latent.index_key;
    case Size::latent_gates:
      return n_head;
    case Size::linear_gates:
      return linear.n_values();
  }
  return 0;
}

int64_t Config::size(Size which, int64_t il) const {
  if (which == Size::ff && !gemma3n.n_ff.empty()) return gemma3n.n_ff[il];
  if (which == Size::ff && !dense.n_ff.empty()) return dense.n_ff[il];
  if (which == Size::ff_twice && !dense.n_ff.empty()) return 2 * dense.n_ff[il];
  if (which == Size::ff && !remote.n_ff.empty()) return remote.n_ff[il];
  if (!mixture.n_head.empty() || !mixture.n_head_kv.empty()) return mixture_size(*this, which, il);
  if (which == Size::latent_gates) return has_attention[il] ? size(which) : 0;
  if (which == Size::linear_gates) return has_attention[il] ? 0 : size(which);
  const bool of_mixer = which == Size::mixer_q || which == Size::mixer_values;
  if (of_mixer && !has_attention.empty() && !has_attention[il]) return linear.n_values();
  if (gemma4.head_dim_full == 0) return size(which);
  const bool windowed = has_window[il];
  const int64_t n = windowed ? head_dim : gemma4.head_dim_full;
  if (which == Size::head_dim) return n;
  if (which == Size::q) return n_head * n;
  if (which == Size::kv) return (windowed ? n_head_kv : gemma4.n_head_kv_full) * n;
  const bool wide = gemma4.wide && il >= n_layer - gemma4.n_shared;
  return which == Size::ff_dense && wide ? 2 * n_ff_dense : size(which);
}

bool Config::has(const TensorRow& row) const {
  switch (row.when) {
    case When::always:
      break;
    case When::qk_norm:
      return dense.qk_norm;
    case When::one_after_another:
      return !dense.parallel;
    case When::one_norm:
      return !dense.two_norms;
    case When::two_norms:
      return dense.two_norms;
    case When::gated_rwkv:
      return rwkv.gate_rank > 0;
    case When::normed_rwkv:
      return rwkv.normed;
  }
  return true;
}

}  // namespace snapkv::huggingface
