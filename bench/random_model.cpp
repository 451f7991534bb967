// SPDX-License-Identifier: MIT
#include "bench/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "bench/gguf_stream.h"
#include "bench/quantize.h"

namespace snapkv {
namespace {

constexpr int64_t kChunkValues = int64_t{1} << 22;  // made and written at a time
constexpr int64_t kFirstWord = 259;                 // after <unk>, <s>, </s> and 256 bytes

// ---------------------------------------------------------------- random values

/// splitmix64's output function: a bijection that mixes all bits.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// The stream of one tensor (FNV-1a of its name).
uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix(hash + mix(seed + 0x9e3779b97f4a7c15u));
}

/// Nearly normal (Irwin-Hall: the sum of eight 16-bit uniforms), mean 0, deviation 1. The sum is an
/// integer, so the only rounding is that of one product.
float normal(uint64_t key, uint64_t index) {
  constexpr float kInverseDeviation = 1.0f / 53509.92f;  // of the sum: 65536 * sqrt(8 / 12)
  int32_t sum = -4 * 65535;
  for (uint64_t word = 0; word < 2; ++word) {
    uint64_t bits = mix(key + (2 * index + word) * 0x9e3779b97f4a7c15u);
    for (int i = 0; i < 4; ++i, bits >>= 16) sum += static_cast<int32_t>(bits & 0xffffu);
  }
  return static_cast<float>(sum) * kInverseDeviation;
}

// ---------------------------------------------------------------- the file

/// What a tensor's values are.
enum class Fill { weight, norm, rope_factor };

struct TensorPlan {
  std::string name;
  DType dtype;
  int64_t n_rows;  // 1 for vectors
  int64_t n_cols;
  Fill fill;
  bool is_vector;
  int64_t bytes() const { return n_rows * row_bytes(dtype, n_cols); }
};

std::vector<TensorPlan> plan_tensors(const RandomModelShape& s, const RandomModelOptions& o) {
  std::vector<TensorPlan> plan;
  const auto matrix = [&](std::string name, int64_t n_out, int64_t n_in) {
    plan.push_back({std::move(name), o.dtype, n_out, n_in, Fill::weight, false});
  };
  const auto vector = [&](std::string name, int64_t n, Fill fill) {
    plan.push_back({std::move(name), DType::f32, 1, n, fill, true});
  };
  const int64_t n_q = s.n_head * s.head_dim;
  const int64_t n_kv = s.n_head_kv * s.head_dim;
  matrix("token_embd.weight", s.n_vocab, s.n_embd);
  vector("output_norm.weight", s.n_embd, Fill::norm);
  if (!o.tied_output) matrix("output.weight", s.n_vocab, s.n_embd);
  if (o.rope_freqs) vector("rope_freqs.weight", s.head_dim / 2, Fill::rope_factor);
  for (int64_t il = 0; il < s.n_layer; ++il) {
    const std::string blk = fmt::format("blk.{}.", il);
    vector(blk + "attn_norm.weight", s.n_embd, Fill::norm);
    vector(blk + "ffn_norm.weight", s.n_embd, Fill::norm);
    matrix(blk + "attn_q.weight", n_q, s.n_embd);
    matrix(blk + "attn_k.weight", n_kv, s.n_embd);
    matrix(blk + "attn_v.weight", n_kv, s.n_embd);
    if (o.qkv_bias) {
      vector(blk + "attn_q.bias", n_q, Fill::weight);
      vector(blk + "attn_k.bias", n_kv, Fill::weight);
      vector(blk + "attn_v.bias", n_kv, Fill::weight);
    }
    matrix(blk + "attn_output.weight", s.n_embd, n_q);
    matrix(blk + "ffn_gate.weight", s.n_ff, s.n_embd);
    matrix(blk + "ffn_up.weight", s.n_ff, s.n_embd);
    matrix(blk + "ffn_down.weight", s.n_embd, s.n_ff);
  }
  return plan;
}

/// A SentencePiece vocabulary: <unk>, <s>, </s>, the bytes, then words that carry their number.
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

std::string make_header(const RandomModelShape& s, const RandomModelOptions& o,
                        const std::vector<TensorPlan>& plan) {
  GgufHeader meta;
  meta.text("general.architecture", "llama");
  meta.text("general.name", fmt::format("random-{}x{}", s.n_layer, s.n_embd));
  meta.u32("general.file_type", dtype_info(o.dtype).file_type);
  if (block_size(o.dtype) > 1) meta.u32("general.quantization_version", 2);
  meta.u32("llama.context_length", o.n_ctx);
  meta.u32("llama.embedding_length", s.n_embd);
  meta.u32("llama.block_count", s.n_layer);
  meta.u32("llama.feed_forward_length", s.n_ff);
  meta.u32("llama.attention.head_count", s.n_head);
  meta.u32("llama.attention.head_count_kv", s.n_head_kv);
  meta.u32("llama.attention.key_length", s.head_dim);
  meta.u32("llama.attention.value_length", s.head_dim);
  meta.f32("llama.attention.layer_norm_rms_epsilon", 1e-5);
  meta.u32("llama.rope.dimension_count", s.head_dim);
  meta.f32("llama.rope.freq_base", s.rope_base);
  if (o.rope_linear_factor > 0) {
    meta.text("llama.rope.scaling.type", "linear");
    meta.f32("llama.rope.scaling.factor", o.rope_linear_factor);
  }
  meta.u32("llama.vocab_size", s.n_vocab);
  add_tokenizer(meta, s.n_vocab);

  GgufHeader tensors;
  int64_t offset = 0;
  for (const TensorPlan& t : plan) {
    tensors.string(t.name);
    tensors.number(uint32_t{t.is_vector ? 1u : 2u});
    tensors.number(static_cast<uint64_t>(t.n_cols));  // the file's order: fastest first
    if (!t.is_vector) tensors.number(static_cast<uint64_t>(t.n_rows));
    tensors.number(dtype_info(t.dtype).ggml_type);
    tensors.number(static_cast<uint64_t>(offset));
    offset += padded(t.bytes());
  }
  return meta.finish(plan.size(), tensors);
}

float value_at(const TensorPlan& t, const RandomModelOptions& o, uint64_t key, int64_t i) {
  switch (t.fill) {
    case Fill::weight:
      return o.weight_stddev * normal(key, static_cast<uint64_t>(i));
    case Fill::norm:
      return 1.0f + o.norm_stddev * normal(key, static_cast<uint64_t>(i));
    case Fill::rope_factor:
      break;
  }
  return 1.0f + 7.0f * static_cast<float>(i) / static_cast<float>(t.n_cols);
}

/// Makes and writes one tensor, kChunkValues at a time; parallel over pieces of a chunk.
void write_tensor(OutputFile& file, const TensorPlan& t, const RandomModelOptions& o,
                  std::vector<char>& chunk) {
  constexpr int64_t kPiece = 4096;  // a multiple of every block size
  const uint64_t key = stream_key(o.seed, t.name);
  const int64_t n_values = t.n_rows * t.n_cols;
  for (int64_t begin = 0; begin < n_values; begin += kChunkValues) {
    const int64_t n = std::min(kChunkValues, n_values - begin);
    const int64_t bytes = row_bytes(t.dtype, n);
    chunk.resize(std::max(chunk.size(), static_cast<size_t>(bytes)));
    char* const out = chunk.data();
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < n; at += kPiece) {
      float x[kPiece];
      const int64_t n_piece = std::min(kPiece, n - at);
      for (int64_t i = 0; i < n_piece; ++i) x[i] = value_at(t, o, key, begin + at + i);
      quantize(t.dtype, x, n_piece, out + row_bytes(t.dtype, at));
    }
    file.write(out, bytes);
  }
  file.pad(t.bytes());
}

struct NamedShape {
  const char* name;
  RandomModelShape shape;
};
// n_embd n_layer n_head n_head_kv head_dim n_ff n_vocab rope_base
constexpr NamedShape kShapes[] = {
    {"tiny-gqa", {128, 4, 4, 2, 32, 352, 512, 1e4}},         // for oracles in tests
    {"tiny-wide", {256, 2, 4, 2, 64, 512, 512, 1e4}},        // for those of superblocks
    {"135m-gqa", {576, 30, 9, 3, 64, 1536, 32000, 1e5}},     // SmolLM-135M
    {"1b-gqa", {2048, 16, 32, 8, 64, 8192, 32000, 5e5}},     // Llama-3.2-1B
    {"1b-mha", {2048, 22, 32, 32, 64, 5632, 32000, 1e6}},    // TinyLlama's sizes, all heads kept
    {"3b-gqa", {3072, 28, 24, 8, 128, 8192, 32000, 5e5}},    // Llama-3.2-3B
    {"7b-mha", {4096, 32, 32, 32, 128, 11008, 32000, 5e7}},  // LWM-Text-Chat-1M
    {"8b-gqa", {4096, 32, 32, 8, 128, 14336, 32000, 1e6}},   // Mistral-7B-v0.2, Llama-3.1-8B
};

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
  for (const int64_t n_in : {s.n_embd, s.n_ff, s.n_head * s.head_dim}) {
    if (n_in % block_size(o.dtype) != 0) {
      fail(ErrorCode::kUsage, "random model: rows of {} values don't divide into {} blocks of {}",
           n_in, name(o.dtype), block_size(o.dtype));
    }
  }
}

}  // namespace

std::vector<std::string> random_model_names() {
  std::vector<std::string> names;
  for (const NamedShape& s : kShapes) names.emplace_back(s.name);
  return names;
}

RandomModelShape random_model_shape(std::string_view name) {
  std::string names;
  for (const NamedShape& s : kShapes) {
    if (name == s.name) return s.shape;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", s.name);
  }
  fail(ErrorCode::kUsage, "unknown model shape \"{}\"; known: {}", name, names);
}

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
