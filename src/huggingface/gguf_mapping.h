// SPDX-License-Identifier: MIT
// GgufMapping: how a class of Hugging Face models is presented in GGUF: the name of its
// architecture, and its tensors. A new class is one row in gguf_mappings.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace snapkv::huggingface {

struct Config;
class JsonFields;
class Keys;

/// A size of the model (config.h), by name, so that shapes can be written into tables.
enum class Size {
  none,
  one,
  embd,
  embd_thrice,
  ff,           // of one expert where there are experts
  ff_dense,     // of the layers without experts, in models that have both
  ff_adjugate,  // of what some experts share
  ff_shared,    // of the expert that every token passes
  ff_shared_twice,
  ff_twice,
  head,     // number of heads of queries
  head_kv,  // of keys and values
  head_dim,
  q,
  kv,
  kv_twice,
  qkv,
  values,     // of all heads, where these are smaller than keys
  attended,   // what attention gives
  out_gates,  // of what attention gives: one for each head, or for each value
  vocab,
  expert,
  kernel,
  context,  // positions that have a vector
  q_and_gate,
  layer_input,   // of what a token gives each layer
  layer_inputs,  // all layers'
  streams,       // residual ones of a token
  streams_squared,
  low_rank,  // of the path beside attention
  // of linear attention
  linear_head,  // number of heads of values
  linear_head_twice,
  linear_value,   // of one head
  linear_values,  // of all heads
  linear_qkv,
  linear_qkv_and_gate,
  // of mixers of Mamba-2 (Mamba2Sizes)
  scan_in,  // values of their first matrix
  scan_values,
  scan_xbc,
  scan_head,
  scan_group,
  scan_group_values,
  // of mixers of Mamba (MambaSizes)
  mamba_channels,
  mamba_channels_twice,
  mamba_state,
  mamba_rank,
  mamba_inputs,  // of steps, B and C
  mamba_head,    // of PLaMo 2, which have a step and a decay each
  // of RWKV (RwkvSizes)
  rwkv_head,   // number of heads
  rwkv_value,  // of one head
  rwkv_key,    // values of keys of all heads, which may share them
  rwkv_mix,    // what a token is mixed with the last one for
  rwkv_mix_rank,
  rwkv_mix_ranks,  // of how the mixes depend on the token, and of all of them
  rwkv_decay,
  rwkv_rate,
  rwkv_first,
  rwkv_gate,  // ranks
  latent,     // that experts work on
  // of latent attention (LatentSizes)
  latent_rank,
  latent_q_rank,
  latent_row,    // of what is remembered
  latent_heads,  // of keys and values of all heads, without what they share
  latent_q,      // of queries of all heads
  index_head,    // number of heads of an indexer's queries
  index_key,     // values of its key
  index_q,       // of its queries of all heads
  // of a layer's attention, latent or linear
  mixer_q,
  mixer_values,
  // of layers with latent attention, or with linear attention; 0 in the others, which don't have
  // such tensors
  latent_gates,
  linear_gates,
};

/// How GGUF's values of a tensor differ from the folder's.
enum class Edit {
  none,
  permute_q,  // reorders the rows of each query head, so that neighbouring values are rotated
  permute_k,  // the same for each key head
  add_one,    // GGUF stores w where the folder stores w - 1, because the class computes with 1 + w
  add_fifth,  // the same with 1 / 5
  add_small,  // the same with 1 / 5^1.5
  value_heads,     // reorders heads of linear attention's values (LinearHeads) among the last rows
  value_columns,   // the same among the columns
  decay_rate,      // the same among the values w, of which GGUF stores -exp(w)
  growth_rate,     // GGUF stores exp(w)
  grouped_qkv,     // takes queries, keys and values from in_proj_qkvz, which has the queries, keys,
                   // values and gates of one head of keys after another
  grouped_gate,    // takes the gates from there
  transposed,      // each matrix of one or several; not their biases
  gate_of_halves,  // takes the rows of gates from transposed matrices where those of up follow
  up_of_halves,    // the others
  gate_of_pairs,   // takes the rows of gates from transposed matrices where rows of gate and up
                   // alternate, or the values from vectors
  up_of_pairs,     // the others
  head_keys,    // takes, transposed, of each head of latent attention the matrix of keys from one
                // that has it before that of values
  head_values,  // takes the matrix of values
  taps,         // GGUF's shape has a dimension of 1 before the last one
  first_half,   // takes the first half of the rows
  second_half,
  head_groups,  // has the rows of all queries, then of all keys, then of all values, where the
                // folder has those of one head of keys after another: queries, key, value
  stacked,      // has in one tensor what the folder has in one for each row: NAME.0, NAME.1 ...
  // takes the rows of one kind from a matrix that has those of one head of keys after another, as
  // for head_groups; queries and keys reordered as for permute_q
  queries_of_groups,
  keys_of_groups,
  values_of_groups,
  head_turns,  // orders heads of queries by their head of keys, where neighbours have different
               // ones
  head_turn_columns,  // the same among the columns
  unit_rows,          // divides each row by its length
  mixes,              // as `stacked`, of NAMEr, NAMEw ..., where the row's name is NAME|rw...
  flattened,          // has the rows of a matrix one after another in a vector
  turned_back,        // negates the second half of each head's rows, which the class rotates back
};

/// Which rows are taken from a matrix that has all queries, then all keys, then all values.
enum class Part { whole, queries, keys, values };

/// Which of Falcon-H1's factors the folder's class multiplies a matrix's results with. GGUF has
/// them in the matrix.
enum class Factor {
  none,
  embeddings,
  logits,
  attention_in,  // of queries and values
  keys,
  attention_out,
  gate,  // of the feed-forward network
  down,
  mixer_in,  // one for each part of what the mixer of Mamba-2 reads
  mixer_out,
  halved,  // of RWKV 6: 1 / 2 for each time that the residual stream was halved before
};

/// What config.json says of the models that have a tensor (DenseConfig).
enum class When {
  always,
  qk_norm,
  one_after_another,  // the feed-forward network does not stand beside attention
  one_norm,           // both read the same
  two_norms,
  gated_rwkv,
  normed_rwkv,  // each head's results have a norm
};

struct DenseTraits;

/// One tensor, or a pair of weight and bias.
struct TensorRow {
  std::string_view name;  // without ".weight" and, in a layer, without "model.layers.N."
  std::string_view gguf;  // without ".weight" and, in a layer, without "blk.N."
  /// Of the folder's weight; without n_in it is a vector.
  Size n_out = Size::none, n_in = Size::none;
  Edit edit = Edit::none;
  bool optional = false;     // also of tensors that only some layers have; loading checks which
  bool whole_names = false;  // whose names have no ".weight" added, in GGUF as in the folder
  Factor factor = Factor::none;
  When when = When::always;
  Part part = Part::whole;
  Size joined = Size::none;  // so many matrices or vectors in one tensor
};

struct GgufMapping {
  std::string_view architecture;              // general.architecture
  std::span<const std::string_view> classes;  // config.json's `architectures`
  std::span<const TensorRow> layer;           // of every layer
  std::span<const TensorRow> ffn = {};      // of every layer too, where other classes share `layer`
  std::span<const TensorRow> experts = {};  // of every expert of a layer
  /// Of all experts of a layer together, in folders that have no `experts`: [n_expert, n_out,
  /// n_in]. Matrices that lie there one after another are read as single ones.
  std::span<const TensorRow> joined_experts = {};
  std::string_view expert_prefix = {};        // of their names, before the expert's number
  std::span<const TensorRow> adjugates = {};  // of what neighbouring experts share
  std::string_view adjugate_prefix = {};
  std::string_view root = "model", embeddings = "embed_tokens";     // of the other names
  std::string_view norm = "model.norm", gguf_norm = "output_norm";  // at the end; empty: no tensor
  Edit norms = Edit::none;                                          // of that one
  bool layer_norms = false;           // whose vectors have biases, all of them
  bool may_have_norm_biases = false;  // whether each vector of a norm may have one
  bool layer_epsilon = false;         // whether GGUF's key of their epsilon is that of layer norms
  bool ties_embeddings = false;       // where config.json does not say
  std::string_view activation = "silu";  // of the feed-forward network
  std::string_view activation_key = "hidden_act";
  std::string_view layers = "layers";   // of the layers' names, between root and number
  std::string_view output = "lm_head";  // the matrix of the logits, or lm_head
  double rope_theta = 1e4;              // base of the rotation, where config.json does not say
  /// `joined_experts` as some folders have them instead: [n_expert, n_in, n_out].
  std::span<const TensorRow> transposed_experts = {};
  const DenseTraits* dense = nullptr;      // of the classes in dense_mappings.h and the like
  std::span<const TensorRow> others = {};  // of the whole model, beside the layers
  std::span<const std::string_view> other_parts = {};  // prefixes of tensors that text does not use
  std::span<const std::string_view> buffers = {};      // tensors of a layer that are not mapped
  std::span<const std::string_view> numbers = {};      // tensors that are keys in GGUF
  std::string_view embedding_norm = {};                // of RWKV, in the first layer
  /// Reads the sizes, where config.json gives them other names than most do.
  void (*read_own_sizes)(const JsonFields& c, Config& config) = nullptr;
  /// Reads what config.json says of experts, rotation and windows in its own way, after the sizes
  /// that all classes have. nullptr: config.cpp reads it.
  void (*read_own)(const JsonFields& c, Config& config) = nullptr;
  /// The keys of this that most architectures don't have.
  void (*add_own_keys)(const Config& config, Keys& keys) = nullptr;

  bool has_experts() const { return !experts.empty() || !joined_experts.empty(); }
};

std::span<const GgufMapping> gguf_mappings();

}  // namespace snapkv::huggingface
