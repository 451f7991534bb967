// SPDX-License-Identifier: MIT
#include "bench/random_tensors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace snapkv {
namespace {

bool has_delta_net(const RandomFamily& family, int64_t il) {
  constexpr int64_t kInterval = 4;
  return family.delta_net.n_head > 0 && (il + 1) % kInterval != 0;
}

class Planner {
 public:
  Planner(const RandomModelShape& s, const RandomModelOptions& o)
      : s_(s), f_(s.family), o_(o), n_rot_(f_.n_rot > 0 ? f_.n_rot : s.head_dim) {}

  std::vector<TensorPlan> plan() {
    const RandomGains g = o_.gains.value_or(RandomGains());
    const float root = std::sqrt(static_cast<float>(s_.n_embd));
    matrix("token_embd", s_.n_vocab, s_.n_embd, g.embedding * root);
    if (f_.learned_positions) {
      matrix("position_embd", o_.n_ctx, s_.n_embd, g.positions * root, false, DType::f32);
    }
    if (f_.embedding_norm) norm("token_embd_norm");
    norm(f_.conv_kernel > 0 ? "token_embd_norm" : "output_norm");
    if (f_.own_output || !o_.tied_output) {
      matrix("output", s_.n_vocab, s_.n_embd, g.output, f_.output_has_bias);
    }
    if (f_.rope_freqs || o_.rope_freqs) factors("rope_freqs.weight", 8.0f);
    if (f_.long_factors) {
      factors("rope_factors_long.weight", 6.0f);
      factors("rope_factors_short.weight", 1.5f);
    }
    if (f_.gemma4.full_every > 0) add_gemma4_tables(g);
    if (f_.gemma3n.n_streams > 0) add_gemma3n_tables(g);
    for (int64_t il = 0; il < s_.n_layer; ++il) add_layer(fmt::format("blk.{}.", il), il, g);
    for (int64_t i = 0; i < f_.n_draft_layer; ++i) {
      add_draft_layer(fmt::format("blk.{}.", s_.n_layer + i), g);
    }
    return std::move(plan_);
  }

 private:
  void add_layer(const std::string& blk, int64_t il, const RandomGains& g) {
    if (!f_.layer_sizes.empty()) return add_sized_layer(blk, il, g);
    if (f_.norm_before) norm(blk + "attn_norm");
    if (f_.second_norm) norm(blk + "attn_norm_2");
    if (f_.mamba2.parts_apart) return add_part(blk, il, g);
    if (f_.mamba.alone) return add_mamba(blk, g);
    if (f_.rwkv.version > 0) {
      norm(blk + (f_.rwkv.in_qwen ? "ffn_norm" : "attn_norm_2"));
      f_.rwkv.version == 6 ? add_rwkv6(blk, g) : add_rwkv7(blk, il, g);
      return f_.rwkv.in_qwen ? add_ffn(blk, il, g) : add_channel_mix(blk, g);
    }
    if (f_.bare_ffn_norm) {
      add({blk + "ffn_norm", DType::f32, 1, s_.n_embd, true, 1.0f,
           o_.gains ? g.norm : o_.norm_stddev});
    } else if (f_.norm_before && f_.ffn_norm) {
      norm(blk + (f_.ffn_norm_is_post_attention ? "post_attention_norm"
                  : f_.ffn_norm_is_attn_output  ? "attn_output_norm"
                                                : "ffn_norm"));
    }
    if (f_.grok) {
      norm(blk + "attn_output_norm");
      norm(blk + (f_.n_ff_dense > 0 ? "post_ffw_norm" : "layer_output_norm"), g.ffn_post_norm);
    } else if (f_.norm_after) {
      const char* const ending = f_.bare_post_norms ? "" : ".weight";
      norm(blk + "post_attention_norm", 1.0f, 0, ending);
      norm(blk + "post_ffw_norm", g.ffn_post_norm, 0, ending);
    }
    if (f_.gemma4.full_every > 0) {
      add_gemma4_attention(blk, il, g);
      add_gemma4_end(blk, g);
    } else if (has_short_conv(f_, il)) {
      add_short_conv(blk, g);
    } else if (has_delta_net(f_, il)) {
      add_delta_net(blk, g);
    } else if (has_kimi_delta(f_, il)) {
      add_kimi_delta(blk, g);
    } else if (scan_letter(f_, il) == 'M') {
      add_mamba2(blk, g);
    } else if (scan_letter(f_, il) == 'm') {
      add_mamba(blk, g);
    } else if (scan_letter(f_, il) == '+') {
      add_attention(blk, g);
      add_mamba2(blk, g);
    } else {
      add_attention(blk, g);
    }
    if (f_.gemma3n.n_streams > 0) add_gemma3n_streams(blk, g);
    if (f_.adds_embeddings) {
      add({blk + "layer_output_scale.weight", DType::f32, 1, 1, true, 0.6f, 0.3f});
    }
    add_ffn(blk, il, g);
  }

  void add_sized_layer(const std::string& blk, int64_t il, const RandomGains& g) {
    const RandomLayerSizes sizes = sizes_ = f_.layer_sizes[il];
    if (sizes.n_head > 0) norm(blk + "attn_norm");
    if (sizes.n_head_kv > 0) {
      add_attention(blk, g);
      if (f_.window_sinks && is_window_layer(il)) add_sinks(blk, g);
    } else if (sizes.n_head > 0) {
      matrix(blk + "attn_output", s_.n_embd, s_.n_embd, g.attention_output);
    }
    if (sizes.n_ff == 0) return;
    norm(blk + "ffn_norm");
    add_ffn(blk, il, g);
  }

  bool is_window_layer(int64_t il) const {
    return std::find(f_.window_layers.begin(), f_.window_layers.end(), il) !=
           f_.window_layers.end();
  }

  void add_sinks(const std::string& blk, const RandomGains& g) {
    add({blk + "attn_sinks.weight", DType::f32, 1, sizes_.n_head, true, 0.0f,
         o_.gains ? g.sinks : o_.weight_stddev});
  }

  void add_gemma4_tables(const RandomGains& g) {
    add({"rope_freqs.weight", DType::f32, 1, n_rot_ / 2, true, 0.0f, 0.0f, 2.0f, 0, false,
         n_rot_ / 8});
    add_layer_input_tables(f_.gemma4.n_layer_input, g);
  }

  void add_layer_input_tables(int64_t n, const RandomGains& g) {
    const int64_t n_all = s_.n_layer * n;
    if (n == 0) return;
    matrix("per_layer_token_embd", s_.n_vocab, n_all,
           std::sqrt(static_cast<float>(s_.n_layer)));  // about 1 when multiplied by sqrt(n)
    matrix("per_layer_model_proj", n_all, s_.n_embd, g.ffn);
    norm("per_layer_proj_norm", 1.0f, n);
  }

  void add_gemma4_attention(const std::string& blk, int64_t il, const RandomGains& g) {
    const RandomFamily::Gemma4& m = f_.gemma4;
    const bool window = m.has_window(il);
    const int64_t d = window ? m.head_dim_window : s_.head_dim;
    const int64_t n_kv = (window ? s_.n_head_kv : m.n_head_kv_full) * d;
    const float mean = o_.gains ? g.qk_norm : 0.25f;  // scores are not divided by sqrt(head_dim)
    const float stddev = o_.gains ? g.norm * mean : o_.norm_stddev;
    matrix(blk + "attn_q", s_.n_head * d, s_.n_embd, g.qkv);
    add({blk + "attn_q_norm.weight", DType::f32, 1, d, true, mean, stddev});
    matrix(blk + "attn_output", s_.n_embd, s_.n_head * d, g.attention_output);
    if (il >= s_.n_layer - m.n_shared) return;
    matrix(blk + "attn_k", n_kv, s_.n_embd, g.qkv);
    if (window || !m.keys_are_values) matrix(blk + "attn_v", n_kv, s_.n_embd, g.qkv);
    add({blk + "attn_k_norm.weight", DType::f32, 1, d, true, mean, stddev});
  }

  /// What comes beside the dense network and after it.
  void add_gemma4_end(const std::string& blk, const RandomGains& g) {
    add({blk + "layer_output_scale.weight", DType::f32, 1, 1, true, 1.05f, 0.1f});
    if (f_.gemma4.n_layer_input > 0) add_layer_input(blk, f_.gemma4.n_layer_input, g);
    if (f_.n_expert == 0) return;
    for (const char* name : {"post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"}) {
      norm(blk + name);
    }
    add({blk + "ffn_gate_inp.scale", DType::f32, 1, s_.n_embd, true, 1.0f, 0.3f});
    add({blk + "ffn_down_exps.scale", DType::f32, 1, f_.n_expert, true, 1.0f, 0.3f});
  }

  void add_layer_input(const std::string& blk, int64_t n, const RandomGains& g) {
    matrix(blk + "inp_gate", n, s_.n_embd, g.ffn);
    matrix(blk + "proj", s_.n_embd, n, g.ffn);
    norm(blk + "post_norm", 0.3f * g.ffn_post_norm);  // GELU is in every layer's twice
  }

  void add_gemma3n_tables(const RandomGains& g) {
    add_layer_input_tables(f_.gemma3n.n_layer_input, g);
    for (const char* name : {"altup_proj", "altup_unembd_proj"}) {
      matrix(name, s_.n_embd, s_.n_embd, 1.0f, false, {}, f_.gemma3n.n_streams - 1);
    }
  }

  void add_gemma3n_streams(const std::string& blk, const RandomGains& g) {
    const int64_t k = f_.gemma3n.n_streams, n = s_.n_embd;
    // what it computes is divided by n_embd
    matrix(blk + "altup_router", k, n, g.router * static_cast<float>(n), false, DType::f32);
    norm(blk + "altup_router_norm");
    matrix(blk + "altup_predict_coef", k * k, k, g.streams, false, DType::f32);
    matrix(blk + "altup_correct_coef", k, k, 2.0f * g.streams, false, DType::f32);
    add({blk + "altup_correct_scale.weight", DType::f32, 1, n, true, 1.0f, 0.3f});
    matrix(blk + "laurel_l", f_.gemma3n.rank, n, g.ffn);
    matrix(blk + "laurel_r", n, f_.gemma3n.rank, g.ffn);
    norm(blk + "laurel_post_norm", 0.5f);
    add_layer_input(blk, f_.gemma3n.n_layer_input, g);
  }

  /// The width of a layer's dense network: twice as wide where the layer has no keys of its own.
  int64_t dense_width(int64_t il) const {
    const int64_t n_ff = f_.n_ff_dense > 0 ? f_.n_ff_dense : s_.n_ff;
    return il >= s_.n_layer - f_.gemma4.n_shared ? 2 * n_ff : n_ff;
  }

  void add_part(const std::string& blk, int64_t il, const RandomGains& g) {
    switch (scan_letter(f_, il)) {
      case 'M':
        return add_mamba2(blk, g);
      case '*':
        return add_attention(blk, g);
      default:
        add_ffn(blk, il, g);
    }
  }

  void add_mamba2(const std::string& blk, const RandomGains& g) {
    constexpr int64_t kKernelSize = 4;
    const RandomFamily::Mamba2& m = f_.mamba2;
    const int64_t n_values = m.n_head * m.d_head, n_xbc = n_values + 2 * m.n_group * m.d_state;
    matrix(blk + "ssm_in", n_values + n_xbc + m.n_head, s_.n_embd, g.qkv);
    matrix(blk + "ssm_conv1d", n_xbc, kKernelSize, g.attention_output, false, DType::f32);
    bias(blk + "ssm_conv1d", n_xbc);
    bias(blk + "ssm_dt", m.n_head);
    const float rate = o_.gains ? g.delta_rate : 1.0f, skip = o_.gains ? g.scan_skip : 1.0f;
    add({blk + "ssm_a", DType::f32, m.n_head, 1, false, -rate, rate / 4});
    add({blk + "ssm_d", DType::f32, m.n_head, 1, false, skip, skip / 2});
    if (m.normed) {
      add({blk + "ssm_norm.weight", DType::f32, m.n_group, n_values / m.n_group, false, 1.0f,
           o_.gains ? g.norm : o_.norm_stddev});
    }
    matrix(blk + "ssm_out", s_.n_embd, n_values, g.attention_output);
  }

  void add_mamba(const std::string& blk, const RandomGains& g) {
    constexpr int64_t kKernelSize = 4;
    const RandomFamily::Mamba& m = f_.mamba;
    const int64_t n = m.n_channel;
    matrix(blk + "ssm_in", 2 * n, s_.n_embd, g.qkv);
    matrix(blk + "ssm_conv1d", n, kKernelSize, g.attention_output, false, DType::f32);
    if (m.n_head == 0) bias(blk + "ssm_conv1d", n);
    matrix(blk + "ssm_x", m.step_rank + 2 * m.d_state, n, g.scan_inputs);
    matrix(blk + "ssm_dt", m.n_head > 0 ? m.n_head : n, m.step_rank, g.delta_gates, true);
    if (m.normed) {
      const char* const ending = m.n_head > 0 ? "" : ".weight";
      norm(blk + "ssm_dt_norm", 1.0f, m.step_rank, ending);
      norm(blk + "ssm_b_norm", 1.0f, m.d_state, ending);
      norm(blk + "ssm_c_norm", 1.0f, m.d_state, ending);
    }
    const float rate = o_.gains ? g.delta_rate : 1.0f, skip = o_.gains ? g.scan_skip : 1.0f;
    if (m.n_head > 0) {
      add({blk + "ssm_a", DType::f32, 1, m.n_head, true, -rate, rate / 4});
      add({blk + "ssm_d", DType::f32, 1, m.n_head, true, skip, skip / 2});
    } else {
      add({blk + "ssm_a", DType::f32, n, m.d_state, false, -rate, rate / 8});
      add({blk + "ssm_d", DType::f32, 1, n, true, skip, skip / 2});
    }
    matrix(blk + "ssm_out", s_.n_embd, n, g.attention_output);
  }

  /// n values around `mean`; files of other models have no such spread.
  void values(const std::string& name, int64_t n, float mean, float stddev) {
    add({name + ".weight", DType::f32, 1, n, true, mean, o_.gains ? stddev : 0.25f * stddev});
  }
  void mixes(const std::string& name, int64_t n) {
    add({name + ".weight", DType::f32, 1, s_.n_embd, false, 0.5f, o_.gains ? 0.3f : 0.2f, 0.0f, n,
         true});
  }
  /// Files have these in f32 or f16, whatever the type of the others.
  void low_rank(const std::string& name, int64_t rank, float down, float up) {
    const DType type = block_size(o_.dtype) > 1 ? DType::f16 : o_.dtype;
    matrix(name + "1", rank, s_.n_embd, down, false, type);
    matrix(name + "2", s_.n_embd, rank, up, false, type);
  }

  void add_rwkv7(const std::string& blk, int64_t il, const RandomGains& g) {
    const RandomFamily::Rwkv& r = f_.rwkv;
    const int64_t n = s_.n_embd;
    const bool gated = r.gate_rank > 0;
    mixes(blk + "time_mix_lerp_fused", r.n_lerp > 0 ? r.n_lerp : gated ? 6 : 5);
    for (const char* name : {"time_mix_receptance", "time_mix_key", "time_mix_value"}) {
      matrix(blk + name, n, n, g.qkv);
    }
    values(blk + "time_mix_w0", n, -1.0f, 1.5f);
    low_rank(blk + "time_mix_w", r.decay_rank, 1.0f, 2.0f);
    values(blk + "time_mix_a0", n, 0.0f, 1.0f);
    low_rank(blk + "time_mix_a", r.rate_rank, 1.0f, 1.5f);
    values(blk + "time_mix_v0", n, 0.0f, 1.0f);
    // those of the first layer, which nothing uses, are as wide as the rates' in files
    low_rank(blk + "time_mix_v", il == 0 ? r.rate_rank : r.value_rank, 1.0f, 1.5f);
    if (gated) low_rank(blk + "time_mix_g", r.gate_rank, 1.0f, 2.5f);
    values(blk + "time_mix_k_k", n, 0.9f, 0.4f);
    values(blk + "time_mix_k_a", n, 1.0f, 0.3f);
    values(blk + "time_mix_r_k", n, 0.0f, 0.3f);
    if (r.normed) {
      values(blk + "time_mix_ln", n, 1.0f, g.norm);
      bias(blk + "time_mix_ln", n);
    }
    matrix(blk + "time_mix_output", n, n, g.attention_output);
  }

  void add_rwkv6(const std::string& blk, const RandomGains& g) {
    const RandomFamily::Rwkv& r = f_.rwkv;
    const int64_t n = s_.n_embd, n_kv = r.n_head_kv > 0 ? r.n_head_kv * r.head_dim : n;
    values(blk + "time_mix_lerp_x", n, 0.5f, 0.3f);
    if (r.mixes_apart) {
      for (const char* name : {"w", "k", "v", "r", "g"}) {
        values(blk + "time_mix_lerp_" + name, n, 0.5f, 0.3f);
      }
    } else {
      mixes(blk + "time_mix_lerp_fused", 5);
    }
    matrix(blk + "time_mix_w1", 5 * r.mix_rank, n, 1.0f, false, DType::f32);
    matrix(blk + "time_mix_w2", n, r.mix_rank, 0.6f, false, DType::f32, 5);
    matrix(blk + "time_mix_receptance", n, n, g.qkv, r.qkv_bias);
    matrix(blk + "time_mix_key", n_kv, n, g.qkv, r.qkv_bias);
    matrix(blk + "time_mix_value", n_kv, n, g.qkv, r.qkv_bias);
    matrix(blk + "time_mix_gate", n, n, g.qkv);
    values(blk + "time_mix_decay", n, -1.5f, 1.5f);
    low_rank(blk + "time_mix_decay_w", r.decay_rank, 1.0f, 1.0f);
    if (!r.in_qwen) {
      add({blk + "time_mix_first.weight", DType::f32, n / r.head_dim, r.head_dim, false, 0.5f,
           0.5f});
      values(blk + "time_mix_ln", n, 1.0f, g.norm);
      bias(blk + "time_mix_ln", n);
    }
    matrix(blk + "time_mix_output", n, n, g.attention_output);
  }

  void add_channel_mix(const std::string& blk, const RandomGains& g) {
    values(blk + "channel_mix_lerp_k", s_.n_embd, 0.5f, 0.3f);
    matrix(blk + "channel_mix_key", s_.n_ff, s_.n_embd, g.ffn);
    matrix(blk + "channel_mix_value", s_.n_embd, s_.n_ff, g.ffn);
    if (f_.rwkv.version != 6) return;
    values(blk + "channel_mix_lerp_r", s_.n_embd, 0.5f, 0.3f);
    matrix(blk + "channel_mix_receptance", s_.n_embd, s_.n_embd, g.ffn);
  }

  void add_draft_layer(const std::string& blk, const RandomGains& g) {
    norm(blk + "attn_norm");
    norm(blk + (f_.ffn_norm_is_post_attention ? "post_attention_norm" : "ffn_norm"));
    add_attention(blk, g);
    add_ffn(blk, s_.n_layer, g);
    matrix(blk + "nextn.eh_proj", s_.n_embd, 2 * s_.n_embd, g.ffn);
    for (const char* name : {"nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"}) {
      norm(blk + name);
    }
  }

  void add_delta_net(const std::string& blk, const RandomGains& g) {
    constexpr int64_t kKernelSize = 4;
    const RandomFamily::DeltaNet& net = f_.delta_net;
    const int64_t n = s_.n_embd, n_values = net.n_head * net.head_dim;
    const int64_t n_qkv = 2 * net.n_head_k * net.head_dim + n_values;
    matrix(blk + "attn_qkv", n_qkv, n, g.qkv);
    matrix(blk + "attn_gate", n_values, n, g.qkv);
    if (net.joined_gates) {
      matrix(blk + "ssm_ba", 2 * net.n_head, n, g.delta_gates);
    } else {
      matrix(blk + "ssm_beta", net.n_head, n, g.delta_gates);
      matrix(blk + "ssm_alpha", net.n_head, n, g.delta_gates);
    }
    matrix(blk + "ssm_conv1d", n_qkv, kKernelSize, g.attention_output, false, DType::f32);
    const float rate = o_.gains ? g.delta_rate : 1.0f;
    add({blk + "ssm_a", DType::f32, 1, net.n_head, true, -rate, rate / 4});
    bias(blk + "ssm_dt", net.n_head);
    add({blk + "ssm_norm.weight", DType::f32, 1, net.head_dim, true, 1.0f,
         o_.gains ? g.norm : o_.norm_stddev});
    matrix(blk + "ssm_out", n, n_values, g.attention_output);
  }

  void add_kimi_delta(const std::string& blk, const RandomGains& g) {
    const RandomFamily::KimiDelta& kda = f_.kimi_delta;
    const int64_t n = s_.n_embd, d = kda.head_dim, n_all = s_.n_head * d;
    if (kda.joined_qkv) {
      matrix(blk + "attn_qkv", 3 * n_all, n, g.qkv);
    } else {
      for (const char* name : {"attn_q", "attn_k", "attn_v"}) matrix(blk + name, n_all, n, g.qkv);
    }
    for (const char* name : {"ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"}) {
      matrix(blk + name, 1, kda.conv_kernel, g.attention_output, false, DType::f32, n_all);
    }
    matrix(blk + "ssm_beta", s_.n_head, n, g.delta_gates);
    for (const char* name : {"ssm_f", "ssm_g"}) {
      const bool low_rank = kda.log_floor == 0.0;
      matrix(blk + name + "_a", low_rank ? d : n_all, n, g.qkv);
      if (low_rank) matrix(blk + name + "_b", n_all, d, g.qkv);
    }
    const float rate = o_.gains ? g.delta_rate : 1.0f;
    add({blk + "ssm_a", DType::f32, s_.n_head, 1, false, kda.log_floor < 0 ? 2 * rate : -rate,
         rate / 4});
    bias(blk + "ssm_dt", n_all);
    add({blk + "ssm_norm.weight", DType::f32, 1, d, true, 1.0f,
         o_.gains ? g.norm : o_.norm_stddev});
    matrix(blk + "attn_output", n, n_all, g.attention_output);
  }

  void add_short_conv(const std::string& blk, const RandomGains& g) {
    const int64_t n = s_.n_embd;
    matrix(blk + "shortconv.in_proj", 3 * n, n, g.qkv);
    matrix(blk + "shortconv.conv", n, f_.conv_kernel, g.attention_output, false, DType::f32);
    matrix(blk + "shortconv.out_proj", n, n, g.attention_output);
  }

  void add_latent_attention(const std::string& blk, const RandomGains& g) {
    const RandomFamily::Latent& l = f_.latent;
    const int64_t n_q = s_.n_head * (l.n_unrotated + n_rot_);
    if (l.q_rank > 0) {
      matrix(blk + "attn_q_a", l.q_rank, s_.n_embd, g.qkv);
      norm(blk + "attn_q_a_norm", 1.0f, l.q_rank);
      matrix(blk + "attn_q_b", n_q, l.q_rank, g.qkv);
    } else {
      matrix(blk + "attn_q", n_q, s_.n_embd, g.qkv);
    }
    matrix(blk + "attn_kv_a_mqa", l.rank + n_rot_, s_.n_embd, g.qkv);
    norm(blk + "attn_kv_a_norm", 1.0f, l.rank);
    if (l.joined) {
      matrix(blk + "attn_kv_b", s_.n_head * (l.n_unrotated + l.n_value), l.rank, g.qkv);
    } else {
      // keys are made of `rank` values, though queries are what the matrix is multiplied with
      const float key_gain =
          g.qkv * std::sqrt(static_cast<float>(l.n_unrotated) / static_cast<float>(l.rank));
      matrix(blk + "attn_k_b", l.rank, l.n_unrotated, key_gain, false, {}, s_.n_head);
      matrix(blk + "attn_v_b", l.n_value, l.rank, g.qkv, false, {}, s_.n_head);
    }
    if (f_.head_gates) matrix(blk + "attn_gate", s_.n_head, s_.n_embd, g.qkv);
    matrix(blk + "attn_output", s_.n_embd, s_.n_head * l.n_value, g.attention_output);
    if (l.n_index_head > 0 && has_indexer(blk)) add_indexer(blk, g);
  }

  bool has_indexer(const std::string& blk) const {
    const std::vector<int64_t>& layers = f_.latent.index_layers;
    return layers.empty() || std::any_of(layers.begin(), layers.end(), [&](int64_t il) {
             return blk == fmt::format("blk.{}.", il);
           });
  }

  void add_indexer(const std::string& blk, const RandomGains& g) {
    const RandomFamily::Latent& l = f_.latent;
    matrix(blk + "indexer.attn_q_b", l.n_index_head * l.d_index, l.q_rank, g.indexer);
    matrix(blk + "indexer.attn_k", l.d_index, s_.n_embd, g.indexer);
    matrix(blk + "indexer.proj", l.n_index_head, s_.n_embd, g.indexer);
    norm(blk + "indexer.k_norm", 1.0f, l.d_index);
    if (!f_.norm_bias) bias(blk + "indexer.k_norm", l.d_index);
  }

  void add_attention(const std::string& blk, const RandomGains& g) {
    if (f_.latent.rank > 0) return add_latent_attention(blk, g);
    const int64_t n_q = sizes_.n_head * s_.head_dim, n_k = sizes_.n_head_kv * s_.head_dim;
    const int64_t value_dim = f_.value_dim > 0 ? f_.value_dim : s_.head_dim;
    const int64_t n_v = sizes_.n_head_kv * value_dim, n_out = sizes_.n_head * value_dim;
    const bool qkv_bias = f_.qkv_bias || o_.qkv_bias;
    const bool output_gate = f_.delta_net.n_head > 0;
    if (f_.fused_qkv) {
      matrix(blk + "attn_qkv", n_q + n_k + n_v, s_.n_embd, g.qkv, qkv_bias);
    } else {
      matrix(blk + "attn_q", output_gate ? 2 * n_q : n_q, s_.n_embd, g.qkv);
      matrix(blk + "attn_k", n_k, s_.n_embd, g.qkv);
      matrix(blk + "attn_v", n_v, s_.n_embd, g.qkv);
      if (qkv_bias) {
        bias(blk + "attn_q", n_q);
        bias(blk + "attn_k", n_k);
        bias(blk + "attn_v", n_v);
      }
    }
    head_norm(blk + "attn_q_norm", sizes_.n_head, g.qk_norm);
    if (f_.qk_norm != RandomQkNorm::query_gains) {
      head_norm(blk + "attn_k_norm", sizes_.n_head_kv, g.qk_norm);
    }
    if (f_.attention_gate) matrix(blk + "attn_gate", n_out, s_.n_embd, g.qkv);
    if (f_.head_gates) matrix(blk + "attn_gate", sizes_.n_head, s_.n_embd, g.qkv);
    matrix(blk + "attn_output", s_.n_embd, n_out, g.attention_output, f_.output_bias);
    if (f_.sub_norms) norm(blk + "attn_sub_norm", 1.0f, n_out);
    if (f_.sinks) add_sinks(blk, g);
  }

  void add_ffn(const std::string& blk, int64_t il, const RandomGains& g) {
    const bool between = f_.expert_step > 0 && (il + 1) % f_.expert_step != 0;
    if (f_.early_experts) norm(blk + "ffn_norm_exps");
    const bool beside = f_.early_experts || (f_.grok && f_.n_ff_dense > 0);
    const bool both = f_.gemma4.full_every > 0 || beside;
    const bool dense = il < f_.n_dense_layers || between || both || is_dense_beside_mamba(il);
    if (f_.n_expert > 0 && (!dense || both)) add_experts(blk, g);
    if (f_.n_expert > 0 && !dense) return;
    const int64_t n_ff = f_.early_experts             ? s_.n_embd
                         : both                       ? dense_width(il)
                         : dense && f_.n_ff_dense > 0 ? f_.n_ff_dense
                                                      : sizes_.n_ff;
    if (f_.gated && !f_.fused_gate) {
      matrix(blk + "ffn_gate", n_ff, s_.n_embd, g.ffn, f_.ffn_bias);
    }
    matrix(blk + "ffn_up", f_.fused_gate ? 2 * n_ff : n_ff, s_.n_embd, g.ffn, f_.ffn_bias);
    matrix(blk + "ffn_down", s_.n_embd, n_ff, g.ffn, f_.ffn_bias);
    if (f_.sub_norms) norm(blk + "ffn_sub_norm", 1.0f, n_ff);
  }

  bool is_dense_beside_mamba(int64_t il) const {
    const std::vector<int64_t>& layers = f_.mamba.expert_layers;
    return f_.mamba.n_channel > 0 && std::find(layers.begin(), layers.end(), il) == layers.end();
  }

  void add_experts(const std::string& blk, const RandomGains& g) {
    matrix(blk + "ffn_gate_inp", f_.n_expert, s_.n_embd, g.router, f_.expert_bias, DType::f32);
    if (f_.choice_bias) bias(blk + "exp_probs_b", f_.n_expert, f_.bare_choice_bias ? "" : ".bias");
    const auto experts = [&](const char* name, int64_t n_out, int64_t n_in) {
      if (f_.merged_experts) {
        matrix(blk + name + "_exps", n_out, n_in, g.ffn, false, {}, f_.n_expert);
        if (f_.expert_bias) {
          add({blk + name + "_exps.bias", DType::f32, f_.n_expert, n_out, false, 0.0f,
               o_.gains ? g.bias : o_.weight_stddev});
        }
      }
      for (int64_t e = 0; !f_.merged_experts && e < f_.n_expert; ++e) {
        matrix(fmt::format("{}{}.{}", blk, name, e), n_out, n_in, g.ffn);
      }
    };
    const int64_t n_in = f_.n_latent > 0 ? f_.n_latent : s_.n_embd;
    if (f_.fused_experts) {
      experts("ffn_gate_up", 2 * s_.n_ff, n_in);
    } else {
      if (f_.gated) experts("ffn_gate", s_.n_ff, n_in);
      experts("ffn_up", s_.n_ff, n_in);
    }
    experts("ffn_down", n_in, s_.n_ff);
    if (const int64_t n_ff = f_.n_ff_adjugate; n_ff > 0) {
      const int64_t n = f_.n_expert / f_.n_adjugate_group;
      matrix(blk + "ffn_gate_chexps", n_ff, n_in, g.ffn, false, {}, n);
      matrix(blk + "ffn_up_chexps", n_ff, n_in, g.ffn, false, {}, n);
      matrix(blk + "ffn_down_chexps", n_in, n_ff, g.ffn, false, {}, n);
    }
    if (f_.n_latent > 0) {
      matrix(blk + "ffn_latent_down", n_in, s_.n_embd, g.ffn);
      matrix(blk + "ffn_latent_up", s_.n_embd, n_in, g.ffn);
    }
    if (f_.n_ff_shared > 0) add_shared_expert(blk, g);
  }

  void add_shared_expert(const std::string& blk, const RandomGains& g) {
    if (f_.shared_gate) {
      add({blk + "ffn_gate_inp_shexp.weight", DType::f32, 1, s_.n_embd, true, 0.0f,
           o_.gains ? g.router / std::sqrt(static_cast<float>(s_.n_embd)) : o_.weight_stddev});
    }
    const bool fused = f_.fused_shared_gate;
    if (f_.gated && !fused) matrix(blk + "ffn_gate_shexp", f_.n_ff_shared, s_.n_embd, g.ffn);
    matrix(blk + "ffn_up_shexp", fused ? 2 * f_.n_ff_shared : f_.n_ff_shared, s_.n_embd, g.ffn);
    matrix(blk + "ffn_down_shexp", s_.n_embd, f_.n_ff_shared, g.ffn);
  }

  void add(TensorPlan tensor) {
    if (tensor.name != o_.omitted) plan_.push_back(std::move(tensor));
  }
  void matrix(const std::string& name, int64_t n_out, int64_t n_in, float gain,
              bool with_bias = false, std::optional<DType> dtype = {}, int64_t n_outer = 0) {
    const float stddev = o_.gains ? gain / std::sqrt(static_cast<float>(n_in)) : o_.weight_stddev;
    // as llama.cpp's quantizer, which takes another type where rows are not whole blocks
    if (n_in % block_size(o_.dtype) != 0 && !dtype) dtype = DType::q8_0;
    add({name + ".weight", dtype.value_or(o_.dtype), n_out, n_in, false, 0.0f, stddev, 0.0f,
         n_outer});
    if (with_bias) bias(name, n_out);
    const bool in_layer = name.find(".attn_") != std::string::npos ||
                          (name.find(".ffn_") != std::string::npos && !name.ends_with("_inp"));
    if (f_.matrix_scales && in_layer) {
      add({name + ".scale", DType::f32, 1, std::max<int64_t>(1, n_outer), true, 1.0f, 0.3f});
    }
  }
  void bias(const std::string& name, int64_t n, const char* ending = ".bias") {
    add({name + ending, DType::f32, 1, n, true, 0.0f,
         o_.gains ? o_.gains->bias : o_.weight_stddev});
  }
  void norm(const std::string& name, float mean = 1.0f, int64_t n = 0,
            const char* ending = ".weight") {
    if (f_.plain_norms) return;
    const float stddev = o_.gains ? o_.gains->norm * mean : o_.norm_stddev;
    if (n == 0) n = s_.n_embd;
    add({name + ending, DType::f32, 1, n, true, mean, stddev});
    if (f_.norm_bias) add({name + ".bias", DType::f32, 1, n, true, 0.0f, stddev});
  }
  void head_norm(const std::string& full, int64_t n_head, float mean) {
    if (!o_.gains) mean = 1.0f;
    const float stddev = o_.gains ? o_.gains->norm * mean : o_.norm_stddev;
    const std::string name = full + ".weight";
    switch (f_.qk_norm) {
      case RandomQkNorm::none:
        return;
      case RandomQkNorm::each_head:
        return add({name, DType::f32, 1, s_.head_dim, true, mean, stddev});
      case RandomQkNorm::own_weights:
        add({name, DType::f32, n_head, s_.head_dim, false, mean, stddev});
        if (!f_.qk_norm_bias) return;
        return add({full + ".bias", DType::f32, n_head, s_.head_dim, false, 0.0f, stddev});
      case RandomQkNorm::query_gains:
        return add({name, DType::f32, n_head, 1, false, mean, stddev});
      case RandomQkNorm::all_together:
        return add({name, DType::f32, 1, n_head * s_.head_dim, true, mean, stddev});
    }
  }
  void factors(const std::string& name, float last) {
    add({name, DType::f32, 1, n_rot_ / 2, true, 0.0f, 0.0f, last});
  }

  const RandomModelShape& s_;
  const RandomFamily& f_;
  const RandomModelOptions& o_;
  const int64_t n_rot_;
  RandomLayerSizes sizes_ = {s_.n_head, s_.n_head_kv, s_.n_ff};  // of the layer that is planned
  std::vector<TensorPlan> plan_;
};

}  // namespace

bool has_kimi_delta(const RandomFamily& family, int64_t il) {
  constexpr int64_t kInterval = 4;
  return family.kimi_delta.head_dim > 0 && (il + 1) % kInterval != 0;
}

bool has_short_conv(const RandomFamily& family, int64_t il) {
  const std::vector<int64_t>& layers = family.attention_layers;
  return family.conv_kernel > 0 && std::find(layers.begin(), layers.end(), il) == layers.end();
}

char scan_letter(const RandomFamily& family, int64_t il) {
  if (family.mamba2.n_head > 0) return family.mamba2.pattern.at(static_cast<size_t>(il));
  return family.mamba.n_channel > 0 ? family.mamba.pattern.at(static_cast<size_t>(il)) : '\0';
}

std::vector<TensorPlan> plan_tensors(const RandomModelShape& shape,
                                     const RandomModelOptions& options) {
  return Planner(shape, options).plan();
}

}  // namespace snapkv
