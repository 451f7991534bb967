// SPDX-License-Identifier: MIT
// The families, one row each, which gives only the differences from Llama (family.h).
#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "format/gguf.h"
#include "model/families/deepseek2.h"
#include "model/families/dense.h"
#include "model/families/gemma3n.h"
#include "model/families/gemma4.h"
#include "model/families/kimi_linear.h"
#include "model/families/lfm2.h"
#include "model/families/mamba.h"
#include "model/families/mamba2_hybrids.h"
#include "model/families/mixtures.h"
#include "model/families/older.h"
#include "model/families/qwen3_next.h"
#include "model/families/rwkv.h"
#include "model/family.h"

namespace snapkv {
namespace {

constexpr std::array kOthers = {
    Family{.name = "llama",
           .models = "Llama 1 to 3, Mistral, Mixtral, TinyLlama, SmolLM 1 and 2",
           .experts = ExpertLayers::if_counted},

    Family{.name = "mistral3", .models = "Ministral 3, Mistral Small 3"},

    Family{.name = "qwen2",
           .models = "Qwen 1.5, 2 and 2.5",
           .qkv_bias = Presence::required,
           .rope = RopeLayout::neox},

    Family{.name = "qwen2moe",
           .models = "Qwen 1.5 and 2, mixtures of experts",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::gated,
           .qkv_bias = Presence::required,
           .experts_normalized = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "qwen3",
           .models = "Qwen 3, dense",
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox},

    Family{.name = "qwen3moe",
           .models = "Qwen 3, mixtures of experts",
           .experts = ExpertLayers::always,
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox},

    Family{.name = "gpt-oss",
           .models = "gpt-oss 20B and 120B",
           .experts = ExpertLayers::always,
           .ffn_norm_name = "post_attention_norm",
           .qkv_bias = Presence::required,
           .output_bias = Presence::required,
           .expert_bias = Presence::required,
           .activation = Activation::clamped_swiglu,
           .expert_score = ExpertScore::softmax_of_chosen,
           .rope = RopeLayout::neox,
           .windows = {.full_every = 2},
           .sinks = true,
           .shared_output = SharedOutput::never},

    Family{.name = "phi3",
           .models = "Phi 3, Phi 3.5, Phi 4",
           .fused_gate = true,
           .rope = RopeLayout::neox},

    Family{.name = "gemma",
           .models = "Gemma 1",
           .activation = Activation::gelu_tanh,
           .rope = RopeLayout::neox,
           .scales_embeddings = true,
           .shared_output = SharedOutput::always},

    Family{.name = "gemma2",
           .models = "Gemma 2",
           .norm_places = NormPlaces::both,
           .activation = Activation::gelu_tanh,
           .rope = RopeLayout::neox,
           .windows = {.length = 4096, .full_every = 2},
           .scales_embeddings = true,
           .attention_softcap = 50.0f,
           .final_softcap = 30.0f,
           .wide_scale_n_layer = 46,
           .shared_output = SharedOutput::always},

    Family{.name = "gemma3",
           .models = "Gemma 3, text",
           .norm_places = NormPlaces::both,
           .qk_norm = QkNorm::each_head,
           .activation = Activation::gelu_tanh,
           .rope = RopeLayout::neox,
           .windows = {.full_every = 6, .freq_base = 1e4, .scaled = false},
           .scales_embeddings = true,
           .wide_scale_n_layer = 62},

    Family{.name = "gemma3n",
           .models = "Gemma 3n, text",
           .make_layers = make_gemma3n_layers,
           .own_keys = kGemma3nKeys,
           .norm_places = NormPlaces::both,
           .qk_norm = QkNorm::each_head,
           .value_norm = true,
           .activation = Activation::gelu_tanh,
           .rope = RopeLayout::neox,
           .scales_embeddings = true,
           .layer_inputs = true,
           .final_softcap = 30.0f},

    Family{.name = "gemma4",
           .models = "Gemma 4, text",
           .make_layers = make_gemma4_layers,
           .own_keys = kGemma4Keys,
           .experts = ExpertLayers::if_counted,
           .norm_places = NormPlaces::both,
           .qk_norm = QkNorm::each_head,
           .value_norm = true,
           .values_of_keys = true,
           .activation = Activation::gelu_tanh,
           .rope = RopeLayout::neox,
           .scales_embeddings = true,
           .layer_inputs = true,
           .layer_scales = true},

    Family{.name = "smollm3", .models = "SmolLM 3", .rotated = RotatedLayers::three_of_four},

    Family{.name = "granite",
           .models = "Granite 3, dense",
           .rotated = RotatedLayers::if_finetuned,
           .logit_scale = LogitScale::divides},

    Family{.name = "granitemoe",
           .models = "Granite 3, mixtures of experts",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_sized,
           .rotated = RotatedLayers::if_finetuned,
           .logit_scale = LogitScale::divides},

    Family{.name = "olmo2",
           .models = "OLMo 2 and 3",
           .norm_places = NormPlaces::after,
           .qk_norm = QkNorm::all_together,
           .rope = RopeLayout::neox,
           .windows = {.full_every = 4, .scaled = false},
           .shared_output = SharedOutput::never},

    Family{.name = "olmoe",
           .models = "OLMoE",
           .experts = ExpertLayers::always,
           .qk_norm = QkNorm::all_together,
           .experts_normalized = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "starcoder2",
           .models = "StarCoder 2",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .output_bias = Presence::required,
           .ffn_bias = Presence::required,
           .activation = Activation::gelu_tanh,
           .names_activation = true,
           .gated = false,
           .rope = RopeLayout::neox},

    Family{.name = "stablelm",
           .models = "StableLM 3B, Stable LM 2",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .qk_norm = QkNorm::own_weights,
           .qk_norm_weights = Presence::optional,
           .ffn_norm = Presence::optional,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "command-r",
           .models = "Command R, Command R+, Aya",
           .norm = NormKind::layer,
           .qk_norm = QkNorm::own_weights,
           .qk_norm_weights = Presence::optional,
           .parallel = true,
           .logit_scale = LogitScale::multiplies,
           .shared_output = SharedOutput::always},

    Family{.name = "cohere2",
           .models = "Command R7B, Command A",
           .norm = NormKind::layer,
           .parallel = true,
           .rotated = RotatedLayers::windows,
           .windows = {.full_every = 4},
           .logit_scale = LogitScale::multiplies,
           .shared_output = SharedOutput::always},

    Family{.name = "gpt2",
           .models = "GPT-2",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .qkv_bias = Presence::required,
           .output_bias = Presence::required,
           .ffn_bias = Presence::required,
           .activation = Activation::gelu_tanh,
           .names_activation = true,
           .gated = false,
           .rotated = RotatedLayers::none},

    Family{.name = "lfm2",
           .models = "LFM2 and LFM2.5, dense",
           .make_layers = make_lfm2_layers,
           .own_keys = kLfm2Keys,
           .output_norm = "token_embd_norm",
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox},

    Family{.name = "lfm2moe",
           .models = "LFM2, mixtures of experts",
           .make_layers = make_lfm2_layers,
           .own_keys = kLfm2Keys,
           .experts = ExpertLayers::always,
           .output_norm = "token_embd_norm",
           .qk_norm = QkNorm::each_head,
           .choice_bias = Presence::required,
           .expert_score = ExpertScore::sigmoid,
           .rope = RopeLayout::neox},

    Family{.name = "qwen35",
           .models = "Qwen 3.5 and 3.6, dense",
           .make_layers = make_qwen35_layers,
           .own_keys = kQwen3NextKeys,
           .qk_norm = QkNorm::each_head,
           .ffn_norm_name = "post_attention_norm",
           .rope = RopeLayout::neox},

    Family{.name = "qwen35moe",
           .models = "Qwen 3.5 and 3.6, mixtures of experts",
           .make_layers = make_qwen35_layers,
           .own_keys = kQwen3NextKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::gated,
           .qk_norm = QkNorm::each_head,
           .ffn_norm_name = "post_attention_norm",
           .rope = RopeLayout::neox},

    Family{.name = "qwen3next",
           .models = "Qwen3-Next",
           .make_layers = make_qwen3next_layers,
           .own_keys = kQwen3NextKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::gated,
           .qk_norm = QkNorm::each_head,
           .ffn_norm_name = "post_attention_norm",
           .rope = RopeLayout::neox},

    Family{.name = "jamba",
           .models = "Jamba 1.5 to 1.7, Jamba Reasoning 3B",
           .make_layers = make_jamba_layers,
           .own_keys = kMambaKeys,
           .experts = ExpertLayers::if_counted,
           .experts_normalized = false},

    Family{.name = "plamo2",
           .models = "PLaMo 2",
           .make_layers = make_plamo2_layers,
           .own_keys = kMambaKeys,
           .norm_places = NormPlaces::both,
           .qk_norm = QkNorm::own_weights,
           .fused_gate = true,
           .rope = RopeLayout::neox},

    Family{.name = "mamba",
           .models = "Mamba, Falcon Mamba",
           .make_layers = make_mamba_layers,
           .own_keys = kMambaKeys},

    Family{.name = "mamba2",
           .models = "Mamba 2, Codestral Mamba",
           .make_layers = make_mamba2_layers,
           .own_keys = kMamba2Keys},

    Family{.name = "rwkv6",
           .models = "RWKV 6 (Finch)",
           .make_layers = make_rwkv6_layers,
           .own_keys = kRwkvKeys,
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .ffn_norm_name = "attn_norm_2",
           .embedding_norm = true,
           .shared_output = SharedOutput::never},

    Family{.name = "rwkv6qwen2",
           .models = "QRWKV 6",
           .make_layers = make_rwkv6qwen2_layers,
           .own_keys = kRwkvKeys,
           .shared_output = SharedOutput::never},

    Family{.name = "rwkv7",
           .models = "RWKV 7 (Goose)",
           .make_layers = make_rwkv7_layers,
           .own_keys = kRwkvKeys,
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .ffn_norm_name = "attn_norm_2",
           .embedding_norm = true,
           .shared_output = SharedOutput::never},

    Family{.name = "arwkv7",
           .models = "ARWKV 7",
           .make_layers = make_arwkv7_layers,
           .own_keys = kRwkvKeys,
           .shared_output = SharedOutput::never},

    Family{.name = "granitehybrid",
           .models = "Granite 4, Bamba",
           .make_layers = make_granite_hybrid_layers,
           .own_keys = kMamba2Keys,
           .experts = ExpertLayers::if_counted,
           .shared_expert = SharedExpert::if_sized,
           .rotated = RotatedLayers::if_finetuned,
           .logit_scale = LogitScale::divides_if_given},

    Family{.name = "nemotron_h",
           .models = "Nemotron-H, Nemotron Nano 2",
           .make_layers = make_nemotron_h_layers,
           .own_keys = kNemotronHKeys,
           .ffn_norm_name = "attn_norm",
           .activation = Activation::relu_squared,
           .gated = false},

    Family{.name = "nemotron_h_moe",
           .models = "Nemotron 3 Nano",
           .make_layers = make_nemotron_h_layers,
           .own_keys = kNemotronHKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_sized,
           .ffn_norm_name = "attn_norm",
           .choice_bias = Presence::required,
           .activation = Activation::relu_squared,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .gated = false},

    Family{.name = "falcon-h1",
           .models = "Falcon-H1",
           .make_layers = make_falcon_h1_layers,
           .own_keys = kMamba2Keys,
           .rope = RopeLayout::neox,
           .logit_scale = LogitScale::multiplies_if_given},

    Family{.name = "deepseek2",
           .models = "DeepSeek V2, V2 Lite, V3 and R1, Kimi K2, Moonlight, GLM-4.7-Flash",
           .make_layers = make_deepseek2_layers,
           .own_keys = kDeepseek2Keys,
           .experts = ExpertLayers::always,
           .experts_normalized = false},

    Family{.name = "deepseek32",
           .models = "DeepSeek V3.2",
           .make_layers = make_deepseek32_layers,
           .own_keys = kDeepseek32Keys,
           .experts = ExpertLayers::always,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .index_rope = RopeLayout::neox},

    Family{.name = "glm-dsa",
           .models = "GLM 5 and 5.1",
           .make_layers = make_deepseek32_layers,
           .own_keys = kDeepseek32Keys,
           .experts = ExpertLayers::always,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false},

    Family{.name = "mistral4",
           .models = "Mistral Small 4",
           .make_layers = make_deepseek2_layers,
           .own_keys = kDeepseek2Keys,
           .experts = ExpertLayers::always,
           .experts_normalized = false},

    Family{.name = "minicpm3",
           .models = "MiniCPM 3",
           .make_layers = make_minicpm3_layers,
           .own_keys = kDenseLatentKeys,
           .rope = RopeLayout::neox,
           .logit_scale = LogitScale::multiplies_if_given},

    Family{.name = "plm",
           .models = "PLM",
           .make_layers = make_plm_layers,
           .own_keys = kDenseLatentKeys,
           .activation = Activation::relu_squared,
           .gated = false,
           .shared_output = SharedOutput::always},

    Family{.name = "kimi-linear",
           .models = "Kimi Linear",
           .make_layers = make_kimi_linear_layers,
           .own_keys = kKimiLinearKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .choice_bias = Presence::required,
           .expert_score = ExpertScore::sigmoid,
           .shared_output = SharedOutput::never},

    Family{.name = "bailingmoe3",
           .models = "Ling 3",
           .make_layers = make_bailingmoe3_layers,
           .own_keys = kBailingmoe3Keys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .choice_bias = Presence::required,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .limits_gates = true},

    Family{
        .name = "internlm2", .models = "InternLM 2 and 2.5", .shared_output = SharedOutput::never},

    Family{.name = "glm4",
           .models = "GLM 4 and Z1",
           .norm_places = NormPlaces::both,
           .fused_gate = true},

    Family{.name = "seed_oss",
           .models = "Seed-OSS",
           .ffn_norm_name = "post_attention_norm",
           .rope = RopeLayout::neox},

    Family{.name = "exaone", .models = "EXAONE 3, 3.5 and Deep", .rope = RopeLayout::neox},

    Family{.name = "exaone4",
           .models = "EXAONE 4",
           .norm_places = NormPlaces::after,
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox,
           .rotated = RotatedLayers::windows_if_any,
           .windows = {.full_every = 4}},

    Family{.name = "ernie4_5", .models = "ERNIE 4.5, dense"},

    Family{.name = "hunyuan-dense",
           .models = "Hunyuan 0.5B to 7B",
           .qk_norm = QkNorm::each_head,
           .qk_norm_after_rotation = true,
           .rope = RopeLayout::neox},

    Family{.name = "minicpm",
           .models = "MiniCPM 1, 2 and 4",
           .stream_scales = Presence::required,
           .logit_scale = LogitScale::divides},

    Family{.name = "baichuan",
           .models = "Baichuan and Baichuan 2, 7B and 13B",
           .position_bias = 8.0f,
           .biased_n_layer = 40,
           .shared_output = SharedOutput::never},

    Family{.name = "nemotron",
           .models = "Nemotron 3 and 4, Minitron",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .activation = Activation::relu_squared,
           .gated = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "arcee",
           .models = "AFM 4.5B",
           .activation = Activation::relu_squared,
           .gated = false},

    Family{.name = "apertus",
           .models = "Apertus",
           .qk_norm = QkNorm::each_head,
           .gated = false,
           .xielu = true,
           .rope = RopeLayout::neox},

    Family{.name = "talkie",
           .models = "Talkie 13B",
           .plain_norms = true,
           .qk_norm = QkNorm::query_gains,
           .qk_norm_after_rotation = true,
           .rope = RopeLayout::neox,
           .logit_scale = LogitScale::multiplies,
           .embedding_norm = true,
           .adds_embeddings = true,
           .shared_output = SharedOutput::never},

    // text only: of models that also see pictures, or write them
    Family{.name = "chameleon",
           .models = "Chameleon 7B and 34B, text",
           .after_if_flagged = true,
           .attention_post_norm = "attn_norm",
           .ffn_post_norm = "ffn_norm",
           .qk_norm = QkNorm::own_weights,
           .qk_layer_norm = true,
           .never_written = {.begin = 4, .end = 8196}},

    Family{.name = "qwen2vl",
           .models = "Qwen 2 VL and 2.5 VL, text",
           .qkv_bias = Presence::required,
           .rope = RopeLayout::neox},

    Family{.name = "qwen3vl",
           .models = "Qwen 3 VL, dense, text",
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox},

    Family{.name = "qwen3vlmoe",
           .models = "Qwen 3 VL, mixtures of experts, text",
           .experts = ExpertLayers::always,
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox},
};

constexpr auto kFamilies = [] {
  std::array<Family, kOthers.size() + kDense.size() + kMixtures.size() + kOlder.size()> all;
  auto end = std::copy(kOthers.begin(), kOthers.end(), all.begin());
  end = std::copy(kDense.begin(), kDense.end(), end);
  end = std::copy(kMixtures.begin(), kMixtures.end(), end);
  std::copy(kOlder.begin(), kOlder.end(), end);
  return all;
}();

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family& find_family(const GgufFile& file) {
  const std::string& wanted = file.get_string("general.architecture");
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == wanted) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  fail(ErrorCode::kBadModel, "{}: general.architecture is \"{}\"; supported: {}", file.path(),
       wanted, known);
}

}  // namespace snapkv
