// SPDX-License-Identifier: MIT
#include "bench/random_model.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "bench/gguf_stream.h"
#include "bench/quantize.h"
#include "bench/random_tensors.h"

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
    heads.push_back(letter == '*' || letter == '+' ? static_cast<int32_t>(s.n_head_kv) : 0);
    widths.push_back(letter == '-' ? static_cast<int32_t>(n_ff) : 0);
  }
  for (int64_t i = 0; i < s.family.n_draft_layer; ++i) {  // which have both parts
    heads.push_back(static_cast<int32_t>(s.n_head_kv));
    widths.push_back(static_cast<int32_t>(n_ff));
  }
  meta.array(key("attention.head_count_kv"), 5, heads);
  if (m.parts_apart) meta.array(key("feed_forward_length"), 5, widths);
}

void add_mamba_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily::Mamba& m = s.family.mamba;
  const auto key = [&](std::string_view name) {
    return s.family.architecture + "." + std::string(name);
  };
  meta.u32(key("ssm.conv_kernel"), 4);
  meta.u32(key("ssm.inner_size"), m.n_channel);
  meta.u32(key("ssm.state_size"), m.d_state);
  meta.u32(key("ssm.time_step_rank"), m.n_head > 0 ? m.n_head : m.step_rank);
  if (m.n_head > 0) meta.u32(key("ssm.group_count"), 0);
  std::vector<int32_t> heads;
  for (int64_t il = 0; il < s.n_layer; ++il) {
    const bool attends = scan_letter(s.family, il) == '*';
    heads.push_back(attends ? static_cast<int32_t>(s.n_head_kv) : 0);
  }
  meta.array(key("attention.head_count_kv"), 5, heads);
}

void add_rwkv_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily::Rwkv& r = s.family.rwkv;
  const auto key = [&](std::string_view name) {
    return s.family.architecture + "." + std::string(name);
  };
  meta.u32(key("wkv.head_size"), r.head_dim);
  meta.u32(key("token_shift_count"), r.in_qwen ? 1 : 2);
  meta.u32(key("attention.head_count_kv"), r.n_head_kv);
  if (r.version == 6) {
    meta.u32(key("time_mix_extra_dim"), r.mix_rank);
    meta.u32(key("time_decay_extra_dim"), r.decay_rank);
    if (r.rescale_every > 0) meta.u32(key("rescale_every_n_layers"), r.rescale_every);
    return;
  }
  meta.u32(key("attention.decay_lora_rank"), r.decay_rank);
  meta.u32(key("attention.iclr_lora_rank"), r.rate_rank);
  meta.u32(key("attention.value_residual_mix_lora_rank"), r.value_rank);
  if (r.gate_rank > 0) meta.u32(key("attention.gate_lora_rank"), r.gate_rank);
}

void add_latent_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily& f = s.family;
  const RandomFamily::Latent& l = f.latent;
  const auto key = [&](std::string_view name) { return f.architecture + "." + std::string(name); };
  meta.u32(key("attention.kv_lora_rank"), l.rank);
  meta.u32(key("attention.q_lora_rank"), l.q_rank);
  if (f.kimi_delta.head_dim > 0) {
    std::vector<int32_t> heads;
    for (int64_t il = 0; il < s.n_layer; ++il) heads.push_back(has_kimi_delta(f, il) ? 0 : 1);
    meta.array(key("attention.head_count_kv"), 5, heads);
    meta.u32(key("kda.head_dim"), f.kimi_delta.head_dim);
    meta.u32(key("ssm.conv_kernel"), f.kimi_delta.conv_kernel);
    if (f.kimi_delta.log_floor < 0) {
      meta.boolean(key("kda.safe_gate"), true);
      meta.f32(key("kda.gate_lower_bound"), f.kimi_delta.log_floor);
    }
  } else {
    meta.u32(key("attention.head_count_kv"), l.joined ? s.n_head : 1);
  }
  meta.u32(key("attention.key_length"), (l.joined ? l.n_unrotated : l.rank) + f.n_rot);
  if (l.names_value) meta.u32(key("attention.value_length"), l.joined ? l.n_value : l.rank);
  if (!l.joined) {
    meta.u32(key("attention.key_length_mla"), l.n_unrotated + f.n_rot);
    meta.u32(key("attention.value_length_mla"), l.n_value);
  }
  meta.u32(key("expert_shared_count"), f.n_ff_shared / s.n_ff);
  if (l.n_index_head == 0) return;
  meta.u32(key("attention.indexer.head_count"), l.n_index_head);
  meta.u32(key("attention.indexer.key_length"), l.d_index);
  meta.u32(key("attention.indexer.top_k"), l.top_k);
  if (l.index_layers.empty()) return;
  std::vector<uint32_t> types(s.n_layer, 0);
  for (const int64_t il : l.index_layers) types[il] = 1;
  meta.array(key("attention.indexer.types"), 4, types);
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

void add_gemma3n_keys(GgufHeader& meta, const RandomModelShape& s) {
  const RandomFamily::Gemma3n& m = s.family.gemma3n;
  const auto key = [&](std::string_view name) {
    return s.family.architecture + "." + std::string(name);
  };
  std::vector<uint8_t> windows;
  std::vector<float> peaks;
  for (int64_t il = 0; il < s.n_layer; ++il) {
    windows.push_back(m.has_window(il) ? 1 : 0);
    peaks.push_back(il < m.n_sparse ? static_cast<float>(m.peaks)
                                    : -std::numeric_limits<float>::infinity());
  }
  meta.array(key("attention.sliding_window_pattern"), 7, windows);
  meta.array(key("activation_sparsity_scale"), 6, peaks);
  meta.f32(key("attention.shared_kv_layers"), static_cast<double>(m.n_shared));  // as published
  meta.u32(key("altup.num_inputs"), m.n_streams);
  meta.u32(key("altup.active_idx"), m.active);
  meta.u32(key("embedding_length_per_layer_input"), m.n_layer_input);
}

void add_layer_sizes(GgufHeader& meta, const RandomFamily& f) {
  std::vector<int32_t> heads, heads_kv, widths;
  for (const RandomLayerSizes& sizes : f.layer_sizes) {
    heads.push_back(static_cast<int32_t>(sizes.n_head));
    heads_kv.push_back(static_cast<int32_t>(sizes.n_head_kv));
    widths.push_back(static_cast<int32_t>(sizes.n_ff));
  }
  meta.array(f.architecture + ".attention.head_count", 5, heads);
  meta.array(f.architecture + ".attention.head_count_kv", 5, heads_kv);
  meta.array(f.architecture + ".feed_forward_length", 5, widths);
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
  const bool gemma4 = f.gemma4.full_every > 0, sized = !f.layer_sizes.empty();
  if (sized) {
    add_layer_sizes(meta, f);
  } else if (gemma4) {
    add_gemma4_keys(meta, s);
  } else if (!f.mamba2.parts_apart) {
    const int64_t n_ff = f.n_ff_dense > 0 ? f.n_ff_dense : s.n_ff;
    meta.u32(key("feed_forward_length"), f.counts_both ? 2 * n_ff : n_ff);
  }
  if (f.n_ff_dense > 0) meta.u32(key("expert_feed_forward_length"), s.n_ff);
  if (f.n_shared > 0) {
    meta.u32(key("expert_shared_count"), f.n_shared);
  } else if (f.n_ff_shared > 0 && f.latent.rank == 0) {
    meta.u32(key("expert_shared_feed_forward_length"), f.n_ff_shared);
  }
  if (f.n_latent > 0) meta.u32(key("moe_latent_size"), f.n_latent);
  if (f.n_ff_adjugate > 0) {
    meta.u32(key("expert_chunk_feed_forward_length"), f.n_ff_adjugate);
    meta.u32(key("experts_per_group"), f.n_adjugate_group);
  }
  if (f.expert_step > 0) meta.u32(key("interleave_moe_layer_step"), f.expert_step);
  if (f.n_dense_layers > 0 && f.names_dense_layers)
    meta.u32(key("leading_dense_block_count"), f.n_dense_layers);
  if (f.n_expert > 0) {
    meta.u32(key("expert_count"), f.n_expert);
    meta.u32(key("expert_used_count"), f.n_expert_used);
  }
  if (!sized) meta.u32(key("attention.head_count"), s.n_head);
  if (f.conv_kernel > 0) {
    std::vector<int32_t> heads;
    for (int64_t il = 0; il < s.n_layer; ++il) {
      heads.push_back(has_short_conv(f, il) ? 0 : static_cast<int32_t>(s.n_head_kv));
    }
    meta.array(key("attention.head_count_kv"), 5, heads);
    meta.u32(key("shortconv.l_cache"), f.conv_kernel);
  } else if (f.mamba2.n_head > 0) {
    add_mamba2_keys(meta, s);
  } else if (f.mamba.n_channel > 0) {
    add_mamba_keys(meta, s);
  } else if (f.rwkv.version > 0) {
    add_rwkv_keys(meta, s);
  } else if (f.latent.rank == 0 && !gemma4 && !sized) {
    meta.u32(key("attention.head_count_kv"), s.n_head_kv);
  }
  if (f.delta_net.n_head > 0) add_delta_net_keys(meta, s);
  if (f.sections) add_sections(meta, s);
  if (f.xielu) add_xielu(meta, s.n_layer);
  if (!f.expert_limits.empty()) meta.array(key("swiglu_clamp_exp"), 6, f.expert_limits);
  if (!f.shared_limits.empty()) meta.array(key("swiglu_clamp_shexp"), 6, f.shared_limits);
  if (f.gemma3n.n_streams > 0) add_gemma3n_keys(meta, s);
  if (f.latent.rank > 0) {
    add_latent_keys(meta, s);
  } else {
    meta.u32(key("attention.key_length"), s.head_dim);
    meta.u32(key("attention.value_length"), f.value_dim > 0 ? f.value_dim : s.head_dim);
  }
  const bool layer_epsilon = f.layer_norm && !f.rms_epsilon;
  meta.f32(key(layer_epsilon ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
           1e-5);
  meta.u32(key("rope.dimension_count"), f.n_rot > 0 ? f.n_rot : s.head_dim);
  meta.f32(key("rope.freq_base"), s.rope_base);
  if (o.rope_linear_factor > 0) {
    meta.text(key("rope.scaling.type"), "linear");
    meta.f32(key("rope.scaling.factor"), o.rope_linear_factor);
  }
  if (f.window > 0) meta.u32(key("attention.sliding_window"), f.window);
  if (!f.window_layers.empty()) {
    std::vector<int32_t> pattern(s.n_layer, 0);
    for (const int64_t il : f.window_layers) pattern[il] = 1;
    meta.array(key("attention.sliding_window_pattern"), 5, pattern);
  }
  if (!f.rotated_layers.empty()) {
    meta.array(key("attention.rope_pattern"), 7,
               std::vector<uint8_t>(f.rotated_layers.begin(), f.rotated_layers.end()));
  }
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
    tensors.number(uint32_t{t.is_vector ? 1u : t.n_outer == 0 ? 2u : t.is_spread ? 4u : 3u});
    tensors.number(static_cast<uint64_t>(t.n_cols));  // the file's order: fastest first
    if (!t.is_vector) tensors.number(static_cast<uint64_t>(t.n_rows));
    if (t.is_spread) tensors.number(uint64_t{1});
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
  const std::vector<TensorPlan> plan = plan_tensors(shape, options);
  const std::string header = make_header(shape, options, plan);
  OutputFile file(path);
  file.write(header.data(), static_cast<int64_t>(header.size()));
  std::vector<char> chunk;
  for (const TensorPlan& t : plan) write_tensor(file, t, options, chunk);
  file.close();
}

}  // namespace snapkv
