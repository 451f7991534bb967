// SPDX-License-Identifier: MIT
#include "huggingface/tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "format/block_types.h"
#include "format/byte_reader.h"
#include "format/quantize.h"
#include "huggingface/dense_traits.h"
#include "huggingface/falcon_h1_config.h"
#include "huggingface/gemma4_config.h"
#include "huggingface/tensor_edits.h"
#include "huggingface/tensor_names.h"

namespace snapkv::huggingface {
namespace {

std::string shape_string(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

class Mapper {
 public:
  Mapper(const Config& config, const Shards& shards, const std::string& folder)
      : config_(config), shards_(shards), folder_(folder) {
    for (const ShardTensor& t : shards.tensors) {
      by_name_[config.multimodal ? without_wrapper(t.entry.name) : t.entry.name] = &t;
    }
    if (config.mapping->dense != nullptr && config.mapping->dense->may_lack_root) add_root();
    // as Mamba's authors call the embeddings
    if (const auto older = by_name_.find("backbone.embedding.weight"); older != by_name_.end()) {
      by_name_["backbone.embeddings.weight"] = older->second;
    }
    // of Talkie
    if (const auto bare = by_name_.find("lm_head"); bare != by_name_.end()) {
      by_name_["lm_head.weight"] = bare->second;
    }
  }

  std::vector<MappedTensor> run() {
    const std::string root = std::string(config_.mapping->root) + ".";
    TensorRow embeddings = {config_.mapping->embeddings, "token_embd", Size::vocab, Size::embd};
    embeddings.factor = Factor::embeddings;
    if (config_.is_gemma3n()) {
      add_gemma3n_tables(root);
    } else {
      add(embeddings, root, "");
    }
    for (const TensorRow& row : config_.mapping->others) add(row, root, "");
    add_positions(root);
    add_rotation();
    if (config_.size(Size::layer_input) > 0) add_layer_inputs();
    for (int64_t il = 0; il < config_.n_layer; ++il) {
      il_ = il;
      const std::string prefix = fmt::format("{}{}.{}.", root, config_.mapping->layers, il);
      for (const auto& rows : {config_.mapping->layer, config_.mapping->ffn}) {
        for (const TensorRow& row : rows) add(row, prefix, fmt::format("blk.{}.", il));
      }
      if (config_.is_falcon_h1()) check_mixer_norm(prefix + "mamba.norm.weight");
      const bool has_experts = config_.n_expert > 0 && config_.has_experts_in(il);
      if (has_experts) add_experts(prefix, fmt::format("blk.{}.", il));
      if (il == 0 && !config_.mapping->embedding_norm.empty()) {
        add({config_.mapping->embedding_norm, "token_embd_norm", Size::embd}, prefix, "");
      }
      find(prefix + "self_attn.rotary_emb.inv_freq");  // of older files; recomputed
      ignore_buffers(prefix);
    }
    if (!config_.mapping->norm.empty()) {
      add({config_.mapping->norm, config_.mapping->gguf_norm, Size::embd, Size::none,
           config_.mapping->norms},
          "", "");
    }
    add_output(embeddings, root);
    if (config_.mapping->dense != nullptr) {
      for (const std::string_view name : config_.mapping->dense->root_buffers) {
        find(root + std::string(name));
      }
    }
    for (const std::string_view name : config_.mapping->numbers) find(std::string(name));
    check_all_used();
    return std::move(mapped_);
  }

 private:
  /// Begins all names as transformers' classes do, if none begins so: "h.0.ln_1.weight" becomes
  /// "transformer.h.0.ln_1.weight".
  void add_root() {
    const std::string root = std::string(config_.mapping->root) + ".";
    std::unordered_map<std::string, const ShardTensor*> renamed;
    for (const auto& [name, t] : by_name_) {
      if (name.starts_with(root)) return;
      renamed[name.starts_with("lm_head.") ? name : root + name] = t;
    }
    by_name_ = std::move(renamed);
  }

  /// Learned vectors of positions.
  void add_positions(const std::string& root) {
    const DenseTraits* const traits = config_.mapping->dense;
    if (traits == nullptr || traits->positions.empty()) return;
    add({traits->positions, "position_embd", Size::context, Size::embd}, root, "");
  }

  /// Uses tensors that say nothing: masks, angles, and numbers that are keys in GGUF.
  void ignore_buffers(const std::string& prefix) {
    for (const std::string_view name : config_.mapping->buffers) find(prefix + std::string(name));
    if (config_.mapping->dense == nullptr) return;
    for (const std::string_view name : config_.mapping->dense->buffers) {
      find(prefix + std::string(name));
    }
  }

  /// The tensor must be there exactly if config.json says so.
  void check_mixer_norm(const std::string& name) {
    if (config_.mamba2.normed) {
      need(name);
    } else if (const ShardTensor* norm = find(name)) {
      bad(*norm, "is there, but mamba_rms_norm is false in config.json");
    }
  }

  void add_output(TensorRow embeddings, const std::string& root) {
    const FalconFactors& f = config_.factors;
    std::string_view name = config_.mapping->output;
    if (!by_name_.contains(std::string(name) + ".weight")) name = "lm_head";
    if (!config_.ties_embeddings) {
      TensorRow output = {name, "output", Size::vocab, Size::embd};
      output.factor = Factor::logits;
      if (config_.dense.unit_output) output.edit = Edit::unit_rows;
      add(output, "", "");
      if (config_.remote.normed_output) divide_by_lengths(mapped_.back());
      return;
    }
    check_copy(root + std::string(config_.mapping->embeddings) + ".weight",
               std::string(name) + ".weight");
    const DenseTraits* const traits = config_.mapping->dense;
    if (f.embeddings == f.logits && (traits == nullptr || !traits->needs_output)) return;
    embeddings.gguf = "output";
    embeddings.factor = Factor::logits;
    add(embeddings, root, "");
  }

  /// Makes each column of the matrix one of length 1.
  static void divide_by_lengths(MappedTensor& m) {
    const int64_t n = m.row_values();
    std::vector<double> squares(n);
    std::vector<float> row(n);
    for (int64_t i = 0; i < m.n_rows(); ++i) {
      m.read_row(i, row.data());
      for (int64_t j = 0; j < n; ++j) squares[j] += double{row[j]} * row[j];
    }
    for (const double square : squares) {
      m.divisors.push_back(static_cast<float>(std::sqrt(square)) + 1e-7f);
    }
  }

  template <typename... Args>
  [[noreturn]] void bad(const ShardTensor& t, fmt::format_string<Args...> format,
                        Args&&... args) const {
    fail(ErrorCode::kBadModel, "'{}': tensor '{}' {}", shards_.paths[t.file],
         printable(t.entry.name), fmt::format(format, std::forward<Args>(args)...));
  }

  const ShardTensor* find(const std::string& name) {
    const auto at = by_name_.find(name);
    if (at == by_name_.end()) return nullptr;
    used_.insert(at->second);
    return at->second;
  }

  const ShardTensor& need(const std::string& name) {
    const ShardTensor* const t = find(name);
    if (t != nullptr) return *t;
    fail(ErrorCode::kBadModel, "'{}': tensor '{}' is missing, which {} needs", folder_, name,
         config_.class_name);
  }

  /// The matrices of a layer's experts, each by itself or all together.
  void add_experts(const std::string& prefix, const std::string& gguf_prefix) {
    const std::span<const TensorRow> joined = config_.mapping->joined_experts;
    const bool single =
        joined.empty() || (!config_.mapping->experts.empty() &&
                           !by_name_.contains(prefix + std::string(joined[0].name)));
    const bool transposed = !single && has_transposed_experts(prefix);
    for (const TensorRow& row : transposed ? config_.mapping->transposed_experts : joined) {
      if (!single) add_joined(row, prefix, gguf_prefix);
    }
    if (!single) return;
    const GgufMapping& mapping = *config_.mapping;
    add_one_by_one(mapping.experts, prefix + std::string(mapping.expert_prefix), gguf_prefix,
                   config_.n_expert);
    add_one_by_one(mapping.adjugates, prefix + std::string(mapping.adjugate_prefix), gguf_prefix,
                   config_.n_expert / config_.remote.n_adjugate_group);
  }

  /// `rows` of each of n experts, whose names have its number after `prefix`.
  void add_one_by_one(std::span<const TensorRow> rows, const std::string& prefix,
                      const std::string& gguf_prefix, int64_t n) {
    for (const TensorRow& row : rows) {
      for (int64_t e = 0; e < n; ++e) {
        add(row, fmt::format("{}{}.", prefix, e), gguf_prefix, fmt::format(".{}", e));
      }
    }
  }

  /// Whether the folder has [n_expert, n_in, n_out] where joined_experts say [n_expert, n_out,
  /// n_in]. Where one of the matrices is square, another one tells.
  bool has_transposed_experts(const std::string& prefix) const {
    if (config_.mapping->transposed_experts.empty()) return false;
    for (const TensorRow& row : config_.mapping->joined_experts) {
      const int64_t n_out = config_.size(row.n_out), n_in = config_.size(row.n_in);
      const auto at = by_name_.find(prefix + std::string(row.name));
      if (at == by_name_.end() || n_out == n_in) continue;
      return at->second->entry.shape == std::vector<int64_t>{config_.n_expert, n_in, n_out};
    }
    return false;
  }

  /// Matrices or vectors of all experts in one tensor.
  void add_joined(const TensorRow& row, const std::string& prefix, const std::string& gguf_prefix) {
    const std::string name = prefix + std::string(row.name);
    const bool one_by_one =
        row.n_in != Size::none &&
        (row.edit == Edit::none || row.edit == Edit::first_half || row.edit == Edit::second_half);
    if (one_by_one) {
      add_single_views(row, need(name + (row.whole_names ? "" : ".weight")), gguf_prefix);
    } else if (config_.has_mxfp4_experts && by_name_.contains(name + "_blocks")) {
      add_mxfp4(row, prefix, gguf_prefix);
    } else {
      add(row, prefix, gguf_prefix, "", config_.n_expert);
    }
  }

  /// Views of each expert's matrix, or of one half of it.
  void add_single_views(const TensorRow& row, const ShardTensor& t,
                        const std::string& gguf_prefix) {
    const int64_t n_out = config_.size(row.n_out), n_in = config_.size(row.n_in);
    const Tensor all = checked_view(t, {config_.n_expert, n_out, n_in});
    for (int64_t e = 0; e < config_.n_expert; ++e) {
      const Tensor matrix = all.slice(e, e + 1).reshaped({n_out, n_in});
      MappedTensor m;
      m.name = fmt::format("{}{}.{}.weight", gguf_prefix, row.gguf, e);
      m.source = &t;
      m.tensor = half_of(matrix, row.edit);
      mapped_.push_back(std::move(m));
    }
  }

  /// The weight of a row, and its bias where there is one; or n_joined weights in one tensor.
  void add(const TensorRow& row, const std::string& prefix, const std::string& gguf_prefix,
           const std::string& gguf_suffix = "", int64_t n_joined = 0) {
    if (!config_.has(row)) return;
    if (row.edit == Edit::stacked) return add_stacked(row, prefix, gguf_prefix);
    if (row.edit == Edit::mixes) return add_mixes(row, prefix, gguf_prefix);
    if (row.joined != Size::none && n_joined == 0) n_joined = size(row.joined);
    if (is_unused_rwkv_row(row, prefix, gguf_prefix)) return;
    const std::string name = prefix + std::string(row.name);
    const std::string gguf = gguf_prefix + std::string(row.gguf) + gguf_suffix;
    const std::string ending = row.whole_names ? "" : ".weight";
    const bool of_other_layers =
        (row.n_out == Size::latent_gates || row.n_out == Size::linear_gates) &&
        size(row.n_out) == 0;
    if (of_other_layers || (row.optional && !by_name_.contains(name + ending))) return;
    const ShardTensor& weight = need(name + ending);
    std::vector<int64_t> shape;
    if (n_joined > 0) shape.push_back(n_joined);
    shape.push_back(size(row.n_out));
    if (row.n_in != Size::none) shape.push_back(size(row.n_in));
    add_source(weight, gguf + ending, shape, row.edit, row.part);
    mapped_.back().factors =
        row.factor == Factor::halved ? rwkv_factors(il_) : row_factors(config_, row.factor);
    const bool is_norm = row.n_in == Size::none;
    const GgufMapping& mapping = *config_.mapping;
    const bool all_have = mapping.layer_norms && !row.whole_names;
    const bool biased = !is_norm || all_have || mapping.may_have_norm_biases;
    if (!biased || n_joined > 0) return;
    const ShardTensor* const bias =
        is_norm && all_have ? &need(name + ".bias") : find(name + ".bias");
    if (bias == nullptr) return;
    const bool transposed = row.edit == Edit::transposed;
    const bool unedited = transposed || row.edit == Edit::add_one;
    add_source(*bias, gguf + ".bias", {size(transposed ? row.n_in : row.n_out)},
               unedited ? Edit::none : row.edit, row.part);
  }

  /// By what RWKV 6 divides matrices, as the residual stream is halved after some layers.
  std::vector<RowFactor> rwkv_factors(int64_t il) const {
    const int64_t every = config_.rwkv.rescale_every;
    if (every == 0 || il < every) return {};
    return {{config_.n_embd, std::ldexp(1.0, -static_cast<int>(il / every))}};
  }

  /// The first layer of RWKV 7 does not mix its values with others. llama.cpp reads matrices of
  /// that name there all the same: those of the rates stand in their place, as in its own files.
  bool is_unused_rwkv_row(const TensorRow& row, const std::string& prefix,
                          const std::string& gguf_prefix) {
    if (il_ > 0 || config_.rwkv.rate_rank == 0) return false;
    constexpr std::string_view kValues[] = {"time_mix_v0.weight", "time_mix_v1.weight",
                                            "time_mix_v2.weight"};
    if (std::find(std::begin(kValues), std::end(kValues), row.gguf) != std::end(kValues)) {
      find(prefix + std::string(row.name));
      return true;
    }
    for (size_t i = 0; i < std::size(kValues); ++i) {
      if (row.gguf != fmt::format("time_mix_a{}.weight", i)) continue;
      std::vector<int64_t> shape = {size(row.n_out)};
      if (row.n_in != Size::none) shape.push_back(size(row.n_in));
      add_source(need(prefix + std::string(row.name)), gguf_prefix + std::string(kValues[i]), shape,
                 row.edit);
    }
    return false;
  }

  /// Vectors of a folder, each with a letter, that are rows of one tensor in GGUF.
  void add_mixes(const TensorRow& row, const std::string& prefix, const std::string& gguf_prefix) {
    const int64_t n_rows = size(row.n_out), n_cols = size(row.n_in);
    const size_t bar = row.name.find('|');
    MappedTensor m;
    m.name = fmt::format("{}{}.weight", gguf_prefix, row.gguf);
    m.values.resize(n_rows * n_cols);
    for (int64_t i = 0; i < n_rows; ++i) {
      const ShardTensor& t =
          need(fmt::format("{}{}{}", prefix, row.name.substr(0, bar), row.name[bar + 1 + i]));
      const Tensor from = checked_view(t, {n_cols});
      widen(static_cast<const std::byte*>(from.data), from.dtype, n_cols,
            m.values.data() + i * n_cols);
    }
    m.tensor = Tensor(m.values.data(), DType::f32, {n_rows, 1, 1, n_cols});
    mapped_.push_back(std::move(m));
  }

  /// Vectors of a folder that are rows of one tensor in GGUF.
  void add_stacked(const TensorRow& row, const std::string& prefix,
                   const std::string& gguf_prefix) {
    const int64_t n_rows = size(row.n_out), n_cols = size(row.n_in);
    MappedTensor m;
    m.name = fmt::format("{}{}.weight", gguf_prefix, row.gguf);
    for (int64_t i = 0; i < n_rows; ++i) {
      const ShardTensor& t = need(fmt::format("{}{}.{}.weight", prefix, row.name, i));
      const Tensor from = checked_view(t, {n_cols});
      m.values.resize((i + 1) * n_cols);
      widen(static_cast<const std::byte*>(from.data), from.dtype, n_cols,
            m.values.data() + i * n_cols);
    }
    m.tensor = Tensor(m.values.data(), DType::f32, {n_rows, n_cols});
    mapped_.push_back(std::move(m));
  }

  /// The source's tensor, if it has this shape and a type that can be used.
  Tensor checked_view(const ShardTensor& t, const std::vector<int64_t>& shape) const {
    std::vector<int64_t> actual = t.entry.shape;
    // a convolution along the tokens has one input channel for each output channel
    if (actual.size() == 3 && shape.size() == 2 && actual[1] == 1) actual.erase(actual.begin() + 1);
    // numbers of heads, as Kimi Linear has them: [1, 1, n_head, 1]
    while (actual.size() > 2 && shape.size() == 2 && actual[0] == 1) actual.erase(actual.begin());
    // vectors of the folder that GGUF has as matrices
    const bool is_vector = actual.size() == 1 && shape.size() == 2;
    if (is_vector && actual[0] == shape[0] * shape[1]) actual = shape;
    // matrices one below the other
    const bool below = actual.size() == 2 && shape.size() == 3 && actual[1] == shape[2];
    if (below && actual[0] == shape[0] * shape[1]) actual = shape;
    // a matrix of one row is a vector in GGUF
    while (actual.size() > 1 && actual[0] == 1 && shape.size() == 1) actual.erase(actual.begin());
    if (actual != shape) {
      bad(t, "has shape {}, config.json says {}", shape_string(t.entry.shape), shape_string(shape));
    }
    if (!t.entry.type->dtype) {
      bad(t, "has type {}, which is not supported; supported are F32, F16, BF16",
          t.entry.type->name);
    }
    return view(t.data, *t.entry.type->dtype, shape);
  }

  void add_source(const ShardTensor& t, std::string gguf, const std::vector<int64_t>& shape,
                  Edit edit, Part part = Part::whole) {
    const Tensor all = checked_view(t, shape);
    MappedTensor m;
    m.name = std::move(gguf);
    m.source = &t;
    m.head_dim = config_.head_dim;
    m.n_rot = config_.n_rot;
    m.n_head = config_.n_head;
    m.n_head_kv = config_.n_head_kv;
    if (edit == Edit::head_groups && m.n_head_kv == 1) edit = Edit::none;  // one group: the same
    m.heads = config_.linear;
    if (edit == Edit::first_half || edit == Edit::second_half) {
      m.tensor = half_of(all, edit);
    } else if (part != Part::whole) {
      m.tensor = part_of(all, part);
      m.edit = edit;
    } else {
      m.tensor = view(t.data, all.dtype, gguf_shape(config_, il_, shape, edit));
      m.edit = edit;
    }
    if (is_strided(edit)) {
      m.strides = strides_of(config_, shape, edit);
    }
    // of QRWKV 6, whose folders have what depends on the token in the order r, k, v, w, g
    const bool of_mixes =
        m.name.ends_with(".time_mix_w1.weight") || m.name.ends_with(".time_mix_w2.weight");
    if (of_mixes && config_.mapping->architecture == "rwkv6qwen2") m.block_order = {3, 1, 2, 0, 4};
    mapped_.push_back(std::move(m));
  }

  Tensor part_of(const Tensor& t, Part part) const {
    const int64_t n_q = size(Size::q), n_kv = size(Size::kv);
    if (part == Part::queries) return t.slice(0, n_q);
    return part == Part::keys ? t.slice(n_q, n_q + n_kv) : t.slice(n_q + n_kv, n_q + 2 * n_kv);
  }

  static Tensor view(const std::byte* source, DType dtype, const std::vector<int64_t>& shape) {
    auto* data = const_cast<std::byte*>(source);  // nothing writes through a view of a weight
    if (shape.size() == 1) return {data, dtype, {shape[0]}};
    if (shape.size() == 2) return {data, dtype, {shape[0], shape[1]}};
    return {data, dtype, {shape[0], shape[1], shape[2]}};
  }

  /// Matrices of all experts in MXFP4, whose numbers and scales are two tensors:
  /// [n_expert, n_out, n_in / 32, 16] and [n_expert, n_out, n_in / 32], two numbers a byte. They
  /// are not transposed.
  void add_mxfp4(const TensorRow& row, const std::string& prefix, const std::string& gguf_prefix) {
    const ShardTensor& numbers = need(prefix + std::string(row.name) + "_blocks");
    const ShardTensor& scales = need(prefix + std::string(row.name) + "_scales");
    const int64_t n_out = config_.size(row.n_in), n_in = config_.size(row.n_out);
    if (n_in % kBlockSize != 0) {
      bad(numbers, "has rows of {} values, expected a multiple of {}", n_in, kBlockSize);
    }
    std::vector<int64_t> shape = {config_.n_expert, n_out, n_in / kBlockSize};
    check_bytes(scales, shape);
    shape.push_back(kBlockSize / 2);
    check_bytes(numbers, shape);
    const bool of_pairs = row.edit != Edit::transposed;
    MappedTensor m;
    m.name = gguf_prefix + std::string(row.gguf);
    m.source = &numbers;
    m.scales = &scales;
    m.tensor =
        view(numbers.data, DType::mxfp4, {config_.n_expert, of_pairs ? n_out / 2 : n_out, n_in});
    m.edit = row.edit;
    m.strides = {.n_rows = m.tensor.shape[1],
                 .matrix = n_out * n_in,
                 .row = of_pairs ? 2 * n_in : n_in,
                 .start = row.edit == Edit::up_of_pairs ? n_in : 0};
    mapped_.push_back(std::move(m));
  }

  void check_bytes(const ShardTensor& t, const std::vector<int64_t>& shape) const {
    if (t.entry.shape != shape) {
      bad(t, "has shape {}, config.json says {}", shape_string(t.entry.shape), shape_string(shape));
    }
    if (t.entry.type->name != "U8") {
      bad(t, "has type {}, expected U8, two numbers of MXFP4 or a scale", t.entry.type->name);
    }
  }

  void add_values(std::string gguf, std::vector<float> values) {
    MappedTensor m;
    m.name = std::move(gguf);
    m.values = std::move(values);
    m.tensor = Tensor(m.values.data(), DType::f32, {std::ssize(m.values)});
    mapped_.push_back(std::move(m));
  }

  /// The embeddings of tokens that text has, and the matrices that make the streams and merge them.
  void add_gemma3n_tables(const std::string& root) {
    const ShardTensor& all = need(root + std::string(config_.mapping->embeddings) + ".weight");
    add_source(all, "token_embd.weight", {config_.gemma3n.n_vocab, config_.n_embd}, Edit::none);
    mapped_.back().tensor = mapped_.back().tensor.slice(0, config_.n_vocab);
    for (const auto& [name, gguf] : {std::pair{"altup_projections", "altup_proj"},
                                     std::pair{"altup_unembed_projections", "altup_unembd_proj"}}) {
      for (int64_t i = 0; i + 1 < config_.gemma3n.n_streams; ++i) {
        add_source(need(fmt::format("{}{}.{}.weight", root, name, i)),
                   fmt::format("{}.{}.weight", gguf, i), {config_.n_embd, config_.n_embd},
                   Edit::none);
      }
    }
  }

  /// What tokens give each layer of Gemma 3n and 4.
  void add_layer_inputs() {
    add({"model.embed_tokens_per_layer", "per_layer_token_embd", Size::vocab, Size::layer_inputs},
        "", "");
    add({"model.per_layer_model_projection", "per_layer_model_proj", Size::layer_inputs,
         Size::embd},
        "", "");
    add({"model.per_layer_projection_norm", "per_layer_proj_norm", Size::layer_input}, "", "");
  }

  /// A size, in the current layer.
  int64_t size(Size which) const { return config_.size(which, il_); }

  void add_rotation() {
    const RopeConfig& rope = config_.rope;
    if (config_.is_gemma4()) add_values("rope_freqs.weight", proportional_factors(config_));
    if (rope.type == "llama3") {
      std::vector<float> factors = llama3_factors(config_);
      // as many as layers with a window rotate pairs, of which others use the first half
      if (config_.mapping->architecture == "step35") factors.resize(2 * factors.size(), 1.0f);
      add_values("rope_freqs.weight", std::move(factors));
    }
    if (rope.type == "longrope") {
      add_values("rope_factors_long.weight", rope.long_factors);
      add_values("rope_factors_short.weight", rope.short_factors);
    }
  }

  /// Uses the tensor `copy`, if there is one. Fails if it is not the same as the other.
  void check_copy(const std::string& of, const std::string& copy) {
    const ShardTensor* const second = find(copy);
    const ShardTensor* const first = find(of);
    if (second == nullptr || first == nullptr) return;
    const uint64_t size = first->entry.end - first->entry.begin;
    const bool is_same = first->entry.shape == second->entry.shape &&
                         first->entry.type == second->entry.type &&
                         second->entry.end - second->entry.begin == size &&
                         std::memcmp(first->data, second->data, size) == 0;
    if (!is_same) {
      bad(*second,
          "is not the same as '{}', although tie_word_embeddings is true; with false, it is used",
          printable(of));
    }
  }

  /// Fails if a tensor was not used: leaving it out would compute another function.
  void check_all_used() const {
    int64_t n_other = 0;
    for (const ShardTensor& t : shards_.tensors) {
      if (used_.contains(&t)) continue;
      if (!is_of_another_part(config_, t.entry.name)) {
        bad(t, "is not part of {} as it is supported here", config_.class_name);
      }
      ++n_other;
    }
    if (n_other > 0) {
      log_info("{}: {} tensors of {} are not part of its text model and left out", folder_, n_other,
               config_.class_name);
    }
  }

  const Config& config_;
  const Shards& shards_;
  const std::string& folder_;
  int64_t il_ = 0;  // the current layer
  std::unordered_map<std::string, const ShardTensor*> by_name_;
  std::unordered_set<const ShardTensor*> used_;
  std::vector<MappedTensor> mapped_;
};

}  // namespace

std::vector<MappedTensor> map_tensors(const Config& config, const Shards& shards,
                                      const std::string& folder) {
  return Mapper(config, shards, folder).run();
}

}  // namespace snapkv::huggingface
