// SPDX-License-Identifier: MIT
#include "bench/random_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"
#include "bench/gguf_stream.h"
#include "bench/quantize.h"

namespace snapkv {
namespace {

constexpr int64_t kChunkValues = int64_t{1} << 22;  // values made and written at a time
constexpr int64_t kFirstWord = 259;                 // after <unk>, <s>, </s> and the 256 bytes

// ---------------------------------------------------------------- random values

/// splitmix64's output function: a bijection that mixes all bits.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// The key of a tensor's random stream (FNV-1a of its name).
uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix(hash + mix(seed + 0x9e3779b97f4a7c15u));
}

/// A nearly normal value (Irwin-Hall: the sum of eight 16-bit uniforms), with mean 0 and deviation
/// 1. The sum is an integer, so only one product is rounded.
float normal(uint64_t key, uint64_t index) {
  constexpr float kInverseDeviation = 1.0f / 53509.92f;  // the sum's: 65536 * sqrt(8 / 12)
  int32_t sum = -4 * 65535;
  for (uint64_t word = 0; word < 2; ++word) {
    uint64_t bits = mix(key + (2 * index + word) * 0x9e3779b97f4a7c15u);
    for (int i = 0; i < 4; ++i, bits >>= 16) sum += static_cast<int32_t>(bits & 0xffffu);
  }
  return static_cast<float>(sum) * kInverseDeviation;
}

// ---------------------------------------------------------------- the file

struct TensorPlan {
  std::string name;
  DType dtype;
  int64_t n_rows;  // 1 for vectors
  int64_t n_cols;
  bool is_vector;
  float mean, stddev;
  float last = 0;       // > 0: not random, but from 1 to this
  int64_t n_outer = 0;  // > 0: so many matrices in one tensor
  int64_t n_first = 0;  // > 0: with `last`, only so many values; the others are huge

  int64_t n_all_rows() const { return std::max<int64_t>(n_outer, 1) * n_rows; }
  int64_t bytes() const { return n_all_rows() * row_bytes(dtype, n_cols); }
};

bool has_delta_net(const RandomFamily& family, int64_t il) {
  constexpr int64_t kInterval = 4;
  return family.delta_net.n_head > 0 && (il + 1) % kInterval != 0;
}

bool has_short_conv(const RandomFamily& family, int64_t il) {
  const std::vector<int64_t>& layers = family.attention_layers;
  return family.conv_kernel > 0 && std::find(layers.begin(), layers.end(), il) == layers.end();
}

/// What layer il has in a model with mixers of Mamba-2: a letter of its pattern, else 0.
char scan_letter(const RandomFamily& family, int64_t il) {
  return family.mamba2.n_head > 0 ? family.mamba2.pattern.at(static_cast<size_t>(il)) : '\0';
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
    norm(f_.conv_kernel > 0 ? "token_embd_norm" : "output_norm");
    if (f_.own_output || !o_.tied_output) matrix("output", s_.n_vocab, s_.n_embd, g.output);
    if (f_.rope_freqs || o_.rope_freqs) factors("rope_freqs.weight", 8.0f);
    if (f_.long_factors) {
      factors("rope_factors_long.weight", 6.0f);
      factors("rope_factors_short.weight", 1.5f);
    }
    if (f_.gemma4.full_every > 0) add_gemma4_tables(g);
    for (int64_t il = 0; il < s_.n_layer; ++il) add_layer(fmt::format("blk.{}.", il), il, g);
    for (int64_t i = 0; i < f_.n_draft_layer; ++i) {
      add_draft_layer(fmt::format("blk.{}.", s_.n_layer + i), g);
    }
    return std::move(plan_);
  }

 private:
  void add_layer(const std::string& blk, int64_t il, const RandomGains& g) {
    if (f_.norm_before) norm(blk + "attn_norm");
    if (f_.mamba2.parts_apart) return add_part(blk, il, g);
    if (f_.norm_before && f_.ffn_norm) {
      norm(blk + (f_.ffn_norm_is_post_attention ? "post_attention_norm" : "ffn_norm"));
    }
    if (f_.norm_after) {
      norm(blk + "post_attention_norm");
      norm(blk + "post_ffw_norm", g.ffn_post_norm);
    }
    if (f_.gemma4.full_every > 0) {
      add_gemma4_attention(blk, il, g);
      add_gemma4_end(blk, g);
    } else if (has_short_conv(f_, il)) {
      add_short_conv(blk, g);
    } else if (has_delta_net(f_, il)) {
      add_delta_net(blk, g);
    } else if (scan_letter(f_, il) == 'M') {
      add_mamba2(blk, g);
    } else {
      add_attention(blk, g);
    }
    add_ffn(blk, il, g);
  }

  void add_gemma4_tables(const RandomGains& g) {
    add({"rope_freqs.weight", DType::f32, 1, n_rot_ / 2, true, 0.0f, 0.0f, 2.0f, 0, n_rot_ / 8});
    const int64_t n = f_.gemma4.n_layer_input, n_all = s_.n_layer * n;
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
    const int64_t n = f_.gemma4.n_layer_input;
    add({blk + "layer_output_scale.weight", DType::f32, 1, 1, true, 1.05f, 0.1f});
    if (n > 0) {
      matrix(blk + "inp_gate", n, s_.n_embd, g.ffn);
      matrix(blk + "proj", s_.n_embd, n, g.ffn);
      norm(blk + "post_norm", 0.3f * g.ffn_post_norm);  // GELU is in every layer's twice
    }
    if (f_.n_expert == 0) return;
    for (const char* name : {"post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"}) {
      norm(blk + name);
    }
    add({blk + "ffn_gate_inp.scale", DType::f32, 1, s_.n_embd, true, 1.0f, 0.3f});
    add({blk + "ffn_down_exps.scale", DType::f32, 1, f_.n_expert, true, 1.0f, 0.3f});
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
    add({blk + "ssm_norm.weight", DType::f32, m.n_group, n_values / m.n_group, false, 1.0f,
         o_.gains ? g.norm : o_.norm_stddev});
    matrix(blk + "ssm_out", s_.n_embd, n_values, g.attention_output);
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
    matrix(blk + "attn_output", s_.n_embd, s_.n_head * l.n_value, g.attention_output);
  }

  void add_attention(const std::string& blk, const RandomGains& g) {
    if (f_.latent.rank > 0) return add_latent_attention(blk, g);
    const int64_t n_q = s_.n_head * s_.head_dim, n_kv = s_.n_head_kv * s_.head_dim;
    const bool qkv_bias = f_.qkv_bias || o_.qkv_bias;
    const bool output_gate = f_.delta_net.n_head > 0;
    if (f_.fused_qkv) {
      matrix(blk + "attn_qkv", n_q + 2 * n_kv, s_.n_embd, g.qkv, qkv_bias);
    } else {
      matrix(blk + "attn_q", output_gate ? 2 * n_q : n_q, s_.n_embd, g.qkv);
      matrix(blk + "attn_k", n_kv, s_.n_embd, g.qkv);
      matrix(blk + "attn_v", n_kv, s_.n_embd, g.qkv);
      if (qkv_bias) {
        bias(blk + "attn_q", n_q);
        bias(blk + "attn_k", n_kv);
        bias(blk + "attn_v", n_kv);
      }
    }
    head_norm(blk + "attn_q_norm.weight", s_.n_head, g.qk_norm);
    head_norm(blk + "attn_k_norm.weight", s_.n_head_kv, g.qk_norm);
    if (f_.attention_gate) matrix(blk + "attn_gate", n_q, s_.n_embd, g.qkv);
    matrix(blk + "attn_output", s_.n_embd, n_q, g.attention_output, f_.output_bias);
    if (f_.sinks) {
      add({blk + "attn_sinks.weight", DType::f32, 1, s_.n_head, true, 0.0f,
           o_.gains ? g.sinks : o_.weight_stddev});
    }
  }

  void add_ffn(const std::string& blk, int64_t il, const RandomGains& g) {
    const bool between = f_.expert_step > 0 && (il + 1) % f_.expert_step != 0;
    const bool both = f_.gemma4.full_every > 0;
    const bool dense = il < f_.n_dense_layers || between || both;
    if (f_.n_expert > 0 && (!dense || both)) add_experts(blk, g);
    if (f_.n_expert > 0 && !dense) return;
    const int64_t n_ff = both ? dense_width(il) : dense ? f_.n_ff_dense : s_.n_ff;
    if (f_.gated && !f_.fused_gate) {
      matrix(blk + "ffn_gate", n_ff, s_.n_embd, g.ffn, f_.ffn_bias);
    }
    matrix(blk + "ffn_up", f_.fused_gate ? 2 * n_ff : n_ff, s_.n_embd, g.ffn, f_.ffn_bias);
    matrix(blk + "ffn_down", s_.n_embd, n_ff, g.ffn, f_.ffn_bias);
  }

  void add_experts(const std::string& blk, const RandomGains& g) {
    matrix(blk + "ffn_gate_inp", f_.n_expert, s_.n_embd, g.router, f_.expert_bias, DType::f32);
    if (f_.choice_bias) bias(blk + "exp_probs_b", f_.n_expert);
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
    if (f_.gated) matrix(blk + "ffn_gate_shexp", f_.n_ff_shared, s_.n_embd, g.ffn);
    matrix(blk + "ffn_up_shexp", f_.n_ff_shared, s_.n_embd, g.ffn);
    matrix(blk + "ffn_down_shexp", s_.n_embd, f_.n_ff_shared, g.ffn);
  }

  void add(TensorPlan tensor) {
    if (tensor.name != o_.omitted) plan_.push_back(std::move(tensor));
  }
  void matrix(const std::string& name, int64_t n_out, int64_t n_in, float gain,
              bool with_bias = false, std::optional<DType> dtype = {}, int64_t n_outer = 0) {
    const float stddev = o_.gains ? gain / std::sqrt(static_cast<float>(n_in)) : o_.weight_stddev;
    // as llama.cpp's quantizer, which takes another type where rows are no whole blocks
    if (n_in % block_size(o_.dtype) != 0 && !dtype) dtype = DType::q8_0;
    add({name + ".weight", dtype.value_or(o_.dtype), n_out, n_in, false, 0.0f, stddev, 0.0f,
         n_outer});
    if (with_bias) bias(name, n_out);
  }
  void bias(const std::string& name, int64_t n) {
    add({name + ".bias", DType::f32, 1, n, true, 0.0f,
         o_.gains ? o_.gains->bias : o_.weight_stddev});
  }
  void norm(const std::string& name, float mean = 1.0f, int64_t n = 0) {
    const float stddev = o_.gains ? o_.gains->norm * mean : o_.norm_stddev;
    if (n == 0) n = s_.n_embd;
    add({name + ".weight", DType::f32, 1, n, true, mean, stddev});
    if (f_.norm_bias) add({name + ".bias", DType::f32, 1, n, true, 0.0f, stddev});
  }
  void head_norm(const std::string& name, int64_t n_head, float mean) {
    if (!o_.gains) mean = 1.0f;
    const float stddev = o_.gains ? o_.gains->norm * mean : o_.norm_stddev;
    switch (f_.qk_norm) {
      case RandomQkNorm::none:
        return;
      case RandomQkNorm::each_head:
        return add({name, DType::f32, 1, s_.head_dim, true, mean, stddev});
      case RandomQkNorm::own_weights:
        return add({name, DType::f32, n_head, s_.head_dim, false, mean, stddev});
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
  std::vector<TensorPlan> plan_;
};

/// Adds a SentencePiece vocabulary: <unk>, <s>, </s>, the bytes, and words named by their number.
void add_tokenizer(GgufHeader& meta, int64_t n_vocab) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};  // unknown, control, control
  for (int i = 0; i < 256; ++i) {
    tokens.push_back(fmt::format("<0x{:02X}>", i));
    types.push_back(6);  // byte
  }
  for (int64_t i = 0; i < n_vocab - kFirstWord; ++i) {
    tokens.push_back(fmt::format("\xe2\x96\x81w{}", i));
    types.push_back(1);  // normal
  }
  std::vector<float> scores;
  for (int64_t i = 0; i < n_vocab; ++i) scores.push_back(-static_cast<float>(i));
  meta.text("tokenizer.ggml.model", "llama");
  meta.array("tokenizer.ggml.tokens", 8, tokens);
  meta.array("tokenizer.ggml.scores", 6, scores);
  meta.array("tokenizer.ggml.token_type", 5, types);
  meta.u32("tokenizer.ggml.bos_token_id", 1);
  meta.u32("tokenizer.ggml.eos_token_id", 2);
  meta.u32("tokenizer.ggml.unknown_token_id", 0);
}

/// For pictures: how many pairs turn by time, by height and by width, which a text has all alike.
void add_sections(GgufHeader& meta, const RandomModelShape& s) {
  const auto pairs = static_cast<int32_t>((s.family.n_rot > 0 ? s.family.n_rot : s.head_dim) / 2);
  const int32_t third = pairs / 3;
  meta.array(s.family.architecture + ".rope.dimension_sections", 5,
             std::vector<int32_t>{pairs - 2 * third, third, third, 0});
}

void add_delta_net_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily& f = s.family;
  const auto key = [&](std::string_view name) { return f.architecture + "." + std::string(name); };
  meta.u32(key("full_attention_interval"), 4);
  meta.u32(key("ssm.conv_kernel"), 4);
  meta.u32(key("ssm.state_size"), f.delta_net.head_dim);
  meta.u32(key("ssm.group_count"), f.delta_net.n_head_k);
  meta.u32(key("ssm.time_step_rank"), f.delta_net.n_head);
  meta.u32(key("ssm.inner_size"), f.delta_net.n_head * f.delta_net.head_dim);
}

void add_mamba2_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily::Mamba2& m = s.family.mamba2;
  const auto key = [&](std::string_view name) {
    return s.family.architecture + "." + std::string(name);
  };
  meta.u32(key("ssm.conv_kernel"), 4);
  meta.u32(key("ssm.state_size"), m.d_state);
  meta.u32(key("ssm.group_count"), m.n_group);
  meta.u32(key("ssm.time_step_rank"), m.n_head);
  meta.u32(key("ssm.inner_size"), m.n_head * m.d_head);
  std::vector<int32_t> heads, widths;
  const int64_t n_ff = s.family.n_ff_dense > 0 ? s.family.n_ff_dense : s.n_ff;
  for (int64_t il = 0; il < s.n_layer; ++il) {
    const char letter = scan_letter(s.family, il);
    heads.push_back(letter == '*' ? static_cast<int32_t>(s.n_head_kv) : 0);
    widths.push_back(letter == '-' ? static_cast<int32_t>(n_ff) : 0);
  }
  meta.array(key("attention.head_count_kv"), 5, heads);
  if (m.parts_apart) meta.array(key("feed_forward_length"), 5, widths);
}

void add_latent_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily& f = s.family;
  const RandomFamily::Latent& l = f.latent;
  const auto key = [&](std::string_view name) { return f.architecture + "." + std::string(name); };
  meta.u32(key("attention.kv_lora_rank"), l.rank);
  meta.u32(key("attention.q_lora_rank"), l.q_rank);
  meta.u32(key("attention.head_count_kv"), l.joined ? s.n_head : 1);
  meta.u32(key("attention.key_length"), (l.joined ? l.n_unrotated : l.rank) + f.n_rot);
  meta.u32(key("attention.value_length"), l.joined ? l.n_value : l.rank);
  if (!l.joined) {
    meta.u32(key("attention.key_length_mla"), l.n_unrotated + f.n_rot);
    meta.u32(key("attention.value_length_mla"), l.n_value);
  }
  meta.u32(key("expert_shared_count"), f.n_ff_shared / s.n_ff);
}

void add_gemma4_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily& f = s.family;
  const RandomFamily::Gemma4& m = f.gemma4;
  const auto key = [&](std::string_view name) { return f.architecture + "." + std::string(name); };
  const int64_t n_ff = f.n_ff_dense > 0 ? f.n_ff_dense : s.n_ff;
  std::vector<int32_t> heads, widths;
  std::vector<uint8_t> windows;
  for (int64_t il = 0; il < s.n_layer; ++il) {
    windows.push_back(m.has_window(il) ? 1 : 0);
    heads.push_back(static_cast<int32_t>(m.has_window(il) ? s.n_head_kv : m.n_head_kv_full));
    widths.push_back(static_cast<int32_t>(il >= s.n_layer - m.n_shared ? 2 * n_ff : n_ff));
  }
  meta.array(key("attention.sliding_window_pattern"), 7, windows);
  meta.array(key("attention.head_count_kv"), 5, heads);
  meta.array(key("feed_forward_length"), 5, widths);
  meta.u32(key("attention.key_length_swa"), m.head_dim_window);
  meta.u32(key("attention.value_length_swa"), m.head_dim_window);
  meta.u32(key("attention.shared_kv_layers"), m.n_shared);
  meta.u32(key("embedding_length_per_layer_input"), m.n_layer_input);
  meta.u32(key("rope.dimension_count_swa"), m.head_dim_window);
  meta.f32(key("rope.freq_base_swa"), 1e4);
}

/// Different in each layer, as a model learns them.
void add_xielu(GgufHeader& meta, int64_t n_layer) {
  std::vector<float> alpha_p, alpha_n;
  for (int64_t il = 0; il < n_layer; ++il) {
    alpha_p.push_back(0.8f - 0.2f * static_cast<float>(il));
    alpha_n.push_back(-0.3f + 0.4f * static_cast<float>(il));
  }
  meta.array("xielu.alpha_p", 6, alpha_p);
  meta.array("xielu.alpha_n", 6, alpha_n);
  meta.array("xielu.beta", 6, std::vector<float>(n_layer, 0.5f));
  meta.array("xielu.eps", 6, std::vector<float>(n_layer, -1e-6f));
}

std::string make_header(const RandomModelShape& s, const RandomModelOptions& o,
                        const std::vector<TensorPlan>& plan) {
  GgufHeader meta;
  const RandomFamily& f = s.family;
  const auto key = [&](std::string_view name) { return f.architecture + "." + std::string(name); };
  meta.text("general.architecture", f.architecture);
  // The name must not be one for which llama.cpp patches vocabularies.
  meta.text("general.name", fmt::format("random-{}x{}", s.n_layer, s.n_embd));
  meta.u32("general.file_type", dtype_info(o.dtype).file_type);
  if (block_size(o.dtype) > 1) meta.u32("general.quantization_version", 2);
  meta.u32(key("context_length"), o.n_ctx);
  meta.u32(key("embedding_length"), s.n_embd);
  meta.u32(key("block_count"), s.n_layer + f.n_draft_layer);
  if (f.n_draft_layer > 0) meta.u32(key("nextn_predict_layers"), f.n_draft_layer);
  const bool gemma4 = f.gemma4.full_every > 0;
  if (gemma4) {
    add_gemma4_keys(meta, s);
  } else if (!f.mamba2.parts_apart) {
    meta.u32(key("feed_forward_length"), f.n_ff_dense > 0 ? f.n_ff_dense : s.n_ff);
  }
  if (f.n_ff_dense > 0) meta.u32(key("expert_feed_forward_length"), s.n_ff);
  if (f.n_shared > 0) {
    meta.u32(key("expert_shared_count"), f.n_shared);
  } else if (f.n_ff_shared > 0 && f.latent.rank == 0) {
    meta.u32(key("expert_shared_feed_forward_length"), f.n_ff_shared);
  }
  if (f.n_latent > 0) meta.u32(key("moe_latent_size"), f.n_latent);
  if (f.expert_step > 0) meta.u32(key("interleave_moe_layer_step"), f.expert_step);
  if (f.n_dense_layers > 0) meta.u32(key("leading_dense_block_count"), f.n_dense_layers);
  if (f.n_expert > 0) {
    meta.u32(key("expert_count"), f.n_expert);
    meta.u32(key("expert_used_count"), f.n_expert_used);
  }
  meta.u32(key("attention.head_count"), s.n_head);
  if (f.conv_kernel > 0) {
    std::vector<int32_t> heads;
    for (int64_t il = 0; il < s.n_layer; ++il) {
      heads.push_back(has_short_conv(f, il) ? 0 : static_cast<int32_t>(s.n_head_kv));
    }
    meta.array(key("attention.head_count_kv"), 5, heads);
    meta.u32(key("shortconv.l_cache"), f.conv_kernel);
  } else if (f.mamba2.n_head > 0) {
    add_mamba2_keys(meta, s);
  } else if (f.latent.rank == 0 && !gemma4) {
    meta.u32(key("attention.head_count_kv"), s.n_head_kv);
  }
  if (f.delta_net.n_head > 0) add_delta_net_keys(meta, s);
  if (f.sections) add_sections(meta, s);
  if (f.xielu) add_xielu(meta, s.n_layer);
  if (f.latent.rank > 0) {
    add_latent_keys(meta, s);
  } else {
    meta.u32(key("attention.key_length"), s.head_dim);
    meta.u32(key("attention.value_length"), s.head_dim);
  }
  meta.f32(key(f.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
           1e-5);
  meta.u32(key("rope.dimension_count"), f.n_rot > 0 ? f.n_rot : s.head_dim);
  meta.f32(key("rope.freq_base"), s.rope_base);
  if (o.rope_linear_factor > 0) {
    meta.text(key("rope.scaling.type"), "linear");
    meta.f32(key("rope.scaling.factor"), o.rope_linear_factor);
  }
  if (f.window > 0) meta.u32(key("attention.sliding_window"), f.window);
  for (const RandomKey& k : f.keys) {
    if (const auto* n = std::get_if<int64_t>(&k.value)) meta.u32(key(k.name), *n);
    if (const auto* x = std::get_if<double>(&k.value)) meta.f32(key(k.name), *x);
    if (const auto* flag = std::get_if<bool>(&k.value)) meta.boolean(key(k.name), *flag);
    if (const auto* text = std::get_if<std::string>(&k.value)) meta.text(key(k.name), *text);
  }
  meta.u32(key("vocab_size"), s.n_vocab);
  add_tokenizer(meta, s.n_vocab);

  GgufHeader tensors;
  int64_t offset = 0;
  for (const TensorPlan& t : plan) {
    tensors.string(t.name);
    tensors.number(uint32_t{t.is_vector ? 1u : t.n_outer > 0 ? 3u : 2u});
    tensors.number(static_cast<uint64_t>(t.n_cols));  // the file's order: fastest first
    if (!t.is_vector) tensors.number(static_cast<uint64_t>(t.n_rows));
    if (t.n_outer > 0) tensors.number(static_cast<uint64_t>(t.n_outer));
    tensors.number(dtype_info(t.dtype).ggml_type);
    tensors.number(static_cast<uint64_t>(offset));
    offset += padded(t.bytes());
  }
  return meta.finish(plan.size(), tensors);
}

float value_at(const TensorPlan& t, uint64_t key, int64_t i) {
  if (t.last > 0 && t.n_first > 0 && i >= t.n_first) return 1e30f;
  if (t.last > 0) {
    return 1.0f + (t.last - 1.0f) * static_cast<float>(i) / static_cast<float>(t.n_cols);
  }
  return t.mean + t.stddev * normal(key, static_cast<uint64_t>(i));
}

/// Makes and writes one tensor, kChunkValues at a time, in parallel over the pieces of a chunk.
void write_tensor(OutputFile& file, const TensorPlan& t, const RandomModelOptions& o,
                  std::vector<char>& chunk) {
  constexpr int64_t kPiece = 4096;  // a multiple of every block size
  const uint64_t key = stream_key(o.seed, t.name);
  const int64_t n_values = t.n_all_rows() * t.n_cols;
  for (int64_t begin = 0; begin < n_values; begin += kChunkValues) {
    const int64_t n = std::min(kChunkValues, n_values - begin);
    const int64_t bytes = row_bytes(t.dtype, n);
    chunk.resize(std::max(chunk.size(), static_cast<size_t>(bytes)));
    char* const out = chunk.data();
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < n; at += kPiece) {
      float x[kPiece];
      const int64_t n_piece = std::min(kPiece, n - at);
      for (int64_t i = 0; i < n_piece; ++i) x[i] = value_at(t, key, begin + at + i);
      quantize(t.dtype, x, n_piece, out + row_bytes(t.dtype, at));
    }
    file.write(out, bytes);
  }
  file.pad(t.bytes());
}

void check_shape(const RandomModelShape& s, const RandomModelOptions& o) {
  if (o.dtype == DType::i32) {
    fail(ErrorCode::kUsage, "weights can't have type {}", name(o.dtype));
  }
  if (s.n_embd < 1 || s.n_layer < 1 || s.n_head_kv < 1 || s.n_ff < 1 || s.head_dim < 2) {
    fail(ErrorCode::kUsage, "random model: every size must be positive");
  }
  if (s.n_vocab < kFirstWord) {
    fail(ErrorCode::kUsage, "random model: n_vocab is {}, at least {} are needed", s.n_vocab,
         kFirstWord);
  }
  if (s.head_dim % 2 != 0 || s.n_head % s.n_head_kv != 0) {
    fail(ErrorCode::kUsage, "random model: head_dim {} must be even, n_head {} divisible by {}",
         s.head_dim, s.n_head, s.n_head_kv);
  }
  std::vector<int64_t> widths = {s.n_embd};
  if (s.family.latent.rank == 0) widths.insert(widths.end(), {s.n_ff, s.n_head * s.head_dim});
  for (const int64_t n_in : widths) {
    if (n_in % block_size(o.dtype) != 0) {
      fail(ErrorCode::kUsage, "random model: rows of {} values don't divide into {} blocks of {}",
           n_in, name(o.dtype), block_size(o.dtype));
    }
  }
}

}  // namespace

void write_random_model(const std::string& path, const RandomModelShape& shape,
                        const RandomModelOptions& options) {
  check_shape(shape, options);
  const std::vector<TensorPlan> plan = Planner(shape, options).plan();
  const std::string header = make_header(shape, options, plan);
  OutputFile file(path);
  file.write(header.data(), static_cast<int64_t>(header.size()));
  std::vector<char> chunk;
  for (const TensorPlan& t : plan) write_tensor(file, t, options, chunk);
  file.close();
}

}  // namespace snapkv
