// SPDX-License-Identifier: MIT
// Config: what config.json of a Hugging Face folder says about a model, checked, and the GGUF keys
// made from it. A setting that would change the results and is not supported is an error that names
// its field.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "huggingface/gguf_mapping.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"
#include "huggingface/mapped_tensor.h"

namespace snapkv::huggingface {

/// The rotation of queries and keys, from `rope_parameters`, or in older files from `rope_theta`
/// and `rope_scaling`.
struct RopeConfig {
  double theta = 10000;
  std::string type = "default";  // linear, llama3, yarn, longrope
  double factor = 1;
  int64_t original_context = 0;                      // 0: not given
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;         // yarn: whether the pairs that turn so often are whole ones
  double attention_factor = 1;  // longrope: scales the scores of contexts beyond the original
  double log_multiplier = 0;    // yarn: of the logarithm of factor; 0: not given
  std::vector<float> short_factors, long_factors;  // longrope: [n_rot / 2]
};

/// Gemma 4's: in layers without a window, heads of another size. Config has those of the others.
struct Gemma4Sizes {
  int64_t head_dim_full = 0, n_head_kv_full = 0;  // 0: not such a model
  int64_t n_shared = 0;       // of the last layers, which read rows of earlier ones
  int64_t n_layer_input = 0;  // 0: layers have no inputs of their own
  bool wide = false;          // whether these layers' dense networks are twice as wide
  double rotated_share = 1;   // of the pairs of heads in layers without a window
};

/// Gemma 3n's.
struct Gemma3nSizes {
  int64_t n_streams = 0;      // residual streams of a token; 0: not such a model
  int64_t rank = 0;           // of the path beside attention
  int64_t n_shared = 0;       // of the last layers, which read rows of earlier ones
  int64_t n_layer_input = 0;  // width of the inputs of each layer
  int64_t n_vocab = 0;        // rows of the folder's embeddings; Config::n_vocab of them are used
  std::vector<int64_t> n_ff;  // [n_layer], or empty: all layers have Config::n_ff
  std::vector<double> peaks;  // [n_layer] deviations by which gates must stand out, or -infinity
};

/// Sizes of mixers of Mamba-2.
struct Mamba2Sizes {
  int64_t n_head = 0;   // of states; 0: there are no such mixers
  int64_t n_group = 0;  // that share B and C
  int64_t d_state = 0, d_head = 0;
  bool normed = true;  // whether what they give has a norm

  int64_t n_values() const { return n_head * d_head; }
  int64_t n_xbc() const { return n_values() + 2 * n_group * d_state; }
};

/// Sizes of mixers of Mamba.
struct MambaSizes {
  int64_t n_channel = 0;  // 0: there are no such mixers
  int64_t d_state = 0;
  int64_t step_rank = 0;          // values of which all steps are made
  double norm_eps = 0;            // of norms of steps, B and C without weights; 0: no such norms
  std::vector<bool> has_experts;  // [n_layer]; of Jamba
};

/// MiniCPM 3's factors.
struct MiniCpmScales {
  double embeddings = 1, residual = 1, logits = 1;
};

/// Of Llama 4.
struct Llama4Config {
  int64_t chunk = 0;             // tokens of a chunk of attention
  int64_t expert_step = 1;       // the last of so many layers has experts, the others have none
  bool qk_norm = true;           // of layers that are rotated
  double temperature = 0;        // scale of queries in the others
  int64_t temperature_step = 0;  // tokens from which on it is higher
};

/// What config.json says of mixtures beside their sizes, and of attention that differs by layer
/// (mixture_config.h).
struct MixtureConfig {
  bool layer_norms = false;                // GGUF's key of norms' epsilon is that of layer norms
  bool counts_shared = false;              // GGUF has the number of shared experts, not their width
  bool states_score = false;               // GGUF's key says that scores are a softmax, too
  int64_t n_draft_layers = 0;              // layers after the others, which guess further tokens
  std::vector<int64_t> n_head, n_head_kv;  // [n_layer], or empty: all layers have Config's
  int64_t value_dim = 0;                   // of a head; 0: as keys
  double value_scale = 0;                  // of what attention gives; 0: not given
  bool gates_values = false;  // what attention gives has a gate for each value, not for each head
  std::vector<bool> is_rotated;  // [n_layer], or empty: all layers are
  double decay_floor = 0;        // of linear attention: the least logarithm of a decay
  /// [n_layer], or empty: of gates of experts, and of other networks. 0: none.
  std::vector<double> gate_limits, shared_gate_limits;
  int64_t n_rot_window = 0;  // in layers with a window; 0: as in others
};

/// Of the classes in remote_mixture_mappings.h and remote_layers_mappings.h, which transformers
/// lacks.
struct RemoteConfig {
  bool normed_output =
      false;                  // whether each column of the matrix of logits is made one of length 1
  int64_t n_ff_adjugate = 0;  // of what n_adjugate_group experts share; 0: they share nothing
  int64_t n_adjugate_group = 1;
  int64_t n_mamba_head = 0;   // of PLaMo 2's mixers, MambaSizes::n_channel values together
  std::vector<int64_t> n_ff;  // [n_layer], or empty: all layers have Config::n_ff
  int64_t window_step = 0;    // the last of so many layers has no window; 0: not given
};

/// Sizes of RWKV's mixers.
struct RwkvSizes {
  int64_t head_dim = 0;  // 0: there are no such mixers
  int64_t n_head_kv = 0;
  int64_t n_mix = 0;
  int64_t mix_rank = 0;  // of RWKV 6
  int64_t decay_rank = 0, rate_rank = 0, first_rank = 0, gate_rank = 0;
  bool normed = true;         // each head's results have a norm
  int64_t rescale_every = 0;  // the stream is halved after so many layers; 0: never
};

/// Of Chameleon.
struct ChameleonConfig {
  bool norms_after = false;  // of what attention and networks give, not of what they read
  int64_t first_picture = 0, end_of_pictures = 0;  // ids of tokens that texts don't have
};

/// Of Falcon-H1, by which results of matrices are multiplied (Factor).
struct FalconFactors {
  double embeddings = 1, logits = 1;
  double attention_in = 1, attention_out = 1, keys = 1;
  std::array<double, 2> network = {1, 1};  // gate, down
  double mixer_in = 1, mixer_out = 1;
  std::array<double, 5> mixer_parts = {1, 1, 1, 1, 1};  // gates, x, B, C, steps
};

/// Of the classes in dense_mappings.h.
struct DenseConfig {
  bool qk_norm = false;
  bool parallel = false;         // whether attention and feed-forward network stand side by side
  bool two_norms = false;        // whether these then have a norm each
  double logit_factor = 0;       // of the logits; 0: not given
  double attention_softcap = 0;  // of scores; 0: none
  double alpha = 0;              // that stretches the rotation's base; 0: none
  std::string activation;        // as GGUF names it
  double bias_limit = 0;      // of position biases: the exponent of the least steep; 0: not given
  bool unit_output = false;   // the rows of the matrix of the logits are divided by their lengths
  std::vector<int64_t> n_ff;  // [n_layer], or empty: all layers have Config::n_ff
};

struct Config {
  const GgufMapping* mapping = nullptr;
  std::string class_name;   // "LlamaForCausalLM"
  bool multimodal = false;  // only the text model is read
  int64_t n_layer = 0, n_embd = 0, n_ff = 0, n_head = 0, n_head_kv = 0, head_dim = 0, n_vocab = 0;
  int64_t n_expert = 0, n_expert_used = 0;  // 0: there are none
  int64_t n_ff_dense = 0;      // where it differs from n_ff, which is then of one expert; else 0
  int64_t n_ff_shared = 0;     // of the expert that every token passes; 0: there is none
  int64_t n_latent = 0;        // values that experts work on; 0: n_embd
  int64_t n_dense_layers = 0;  // the first ones, which have no experts
  int64_t n_group = 1, n_group_used = 1;  // of neighbouring experts, and of those that a token uses
  int64_t n_group_best = 2;               // scores of a group of which it is chosen, added
  bool normalizes_experts = true;         // the weights of a token's experts add up to 1
  bool has_mxfp4_experts = false;         // whose matrices have numbers and scales in MXFP4
  bool sigmoid_scores = false;            // of the experts, in place of the softmax
  double router_jitter = 0;               // of the sparse mixer; 0: another router
  double expert_scale = 1;                // of the weights of a token's experts
  int64_t n_rot = 0;
  int64_t n_ctx = 0;
  bool has_head_dim = false;  // whether config.json gives it
  double norm_eps = 0;
  RopeConfig rope;
  double query_growth = 0;      // of queries beyond the original context; 0: they don't grow
  double rope_theta_local = 0;  // for gemma3's layers with a window
  int64_t sliding_window = 0;   // tokens that a layer with a window sees; 0: no layer has one
  /// [n_layer]; if empty, all layers have a window, or those of the family's fixed pattern.
  std::vector<bool> has_window;
  /// [n_layer], where only some layers have attention; the others have a convolution of
  /// conv_kernel tokens. Empty: all have attention.
  std::vector<bool> has_attention;
  int64_t conv_kernel = 0;
  /// Where the others have linear attention, the convolution being a part of it; else n_head is 0.
  LinearHeads linear;
  LatentSizes latent;
  Gemma4Sizes gemma4;
  Gemma3nSizes gemma3n;
  /// Where the others, or all, have such a mixer, the convolution being a part of it.
  Mamba2Sizes mamba2;
  MambaSizes mamba;
  FalconFactors factors;
  MiniCpmScales minicpm;
  Llama4Config llama4;
  DenseConfig dense;
  MixtureConfig mixture;
  ChameleonConfig chameleon;
  RemoteConfig remote;
  RwkvSizes rwkv;
  /// [n_layer] letters, where each layer is one part: M a mixer of Mamba-2, * attention, - a dense
  /// network, E experts. Else empty.
  std::string parts;
  bool is_rotated = true;              // whether queries and keys are
  bool may_rotate_part = false;        // whether n_rot may be less than head_dim
  std::vector<int64_t> rope_sections;  // of pairs that turn by time, height, width; in text alike
  // Granite's factors; 0: not given
  double attention_scale = 0, embedding_scale = 0, residual_scale = 0, logit_scale = 0;
  double final_softcap = 0;  // 0: none
  double qkv_limit = 0;      // of queries, keys and values; 0: none
  bool ties_embeddings = false;

  int64_t size(Size which) const;
  /// The same in layer il, where layers differ.
  int64_t size(Size which, int64_t il) const;
  /// Dense or with experts.
  bool is_lfm2() const { return mapping->architecture.starts_with("lfm2"); }
  bool is_glm4() const { return mapping->architecture.starts_with("glm4"); }
  /// Classes that are read as GLM 4.5, and rotate all of each head where config.json says nothing.
  bool is_solar() const { return class_name == "SolarOpenForCausalLM"; }
  bool is_sarvam() const { return class_name == "SarvamMoEForCausalLM"; }
  bool is_chameleon() const { return mapping->architecture == "chameleon"; }
  /// Also of models that see pictures, whose text model is read.
  bool is_qwen_vl() const {
    return mapping->architecture == "qwen2vl" || mapping->architecture.starts_with("qwen3vl");
  }
  /// Dense or with experts.
  bool is_phi() const { return mapping->architecture == "phi3" || is_phimoe(); }
  /// Whether models of this class have the tensor.
  bool has(const TensorRow& row) const;
  bool is_phimoe() const { return mapping->architecture == "phimoe"; }
  bool is_gemma3n() const { return mapping->architecture == "gemma3n"; }
  bool is_gemma4() const { return mapping->architecture == "gemma4"; }
  bool is_qwen35() const { return mapping->architecture.starts_with("qwen35"); }
  bool is_bamba() const { return class_name == "BambaForCausalLM"; }
  bool is_granite_hybrid() const { return mapping->architecture == "granitehybrid"; }
  bool is_falcon_h1() const { return mapping->architecture == "falcon-h1"; }
  /// Dense or with experts.
  bool is_nemotron_h() const { return mapping->architecture.starts_with("nemotron_h"); }
  /// With experts or without.
  bool is_jamba() const { return mapping->architecture == "jamba"; }
  bool is_minicpm3() const { return mapping->architecture == "minicpm3"; }
  /// Whether the rotation may have factors for short and for long contexts.
  bool may_have_longrope() const {
    return is_phi() || mapping->architecture.starts_with("minicpm");
  }
  bool is_kimi_linear() const { return mapping->architecture == "kimi-linear"; }
  bool is_olmo() const { return mapping->architecture == "olmo"; }
  bool is_jais2() const { return mapping->architecture == "jais2"; }
  bool is_llama4() const { return mapping->architecture == "llama4"; }
  bool has_experts_in(int64_t il) const {
    if (is_jamba()) return mamba.has_experts[static_cast<size_t>(il)];
    if (is_llama4()) return (il + 1) % llama4.expert_step == 0;
    return parts.empty() ? il >= n_dense_layers : parts[static_cast<size_t>(il)] == 'E';
  }
  bool has_linear_attention() const { return is_qwen35() || mapping->architecture == "qwen3next"; }
};

/// `root` is all of config.json. Throws Error{kBadModel} naming the file, the field, and the
/// expected and actual values.
Config read_config(const JsonFields& root);

/// Sets the keys for architecture, sizes and rotation.
void add_config_keys(const Config& config, Keys& keys);

/// The factors, [n_rot / 2], by which rotation type llama3 (Llama 3.1) divides the frequencies.
std::vector<float> llama3_factors(const Config& config);

}  // namespace snapkv::huggingface
