// SPDX-License-Identifier: MIT
#include "model/families/qwen3_next.h"

#include <algorithm>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "format/byte_reader.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

constexpr int64_t kMostHeads = 1 << 12, kMostHeadDim = 1 << 10;

/// Layers whose attention is linear: .attention.recurrent_layers says it of each layer; else all but
/// the last of every .full_attention_interval are.
std::vector<bool> linear_layers(const MetadataReader& reader, int64_t n_layer) {
  constexpr const char* kEach = "attention.recurrent_layers";
  const GgufFile& file = reader.file();
  const auto it = file.metadata().find(reader.key(kEach));
  if (it != file.metadata().end()) {
    const auto* flags = std::get_if<std::vector<bool>>(&it->second.value);
    if (flags == nullptr || std::ssize(*flags) < n_layer) {
      fail(ErrorCode::kBadModel, "{}: {} must be an array of {} bools", file.path(), it->first,
           n_layer);
    }
    return {flags->begin(), flags->begin() + n_layer};
  }
  const int64_t interval = reader.size("full_attention_interval", 4, INT32_MAX);
  std::vector<bool> linear;
  for (int64_t il = 0; il < n_layer; ++il) linear.push_back((il + 1) % interval != 0);
  return linear;
}

[[noreturn]] void fail_sizes(const MetadataReader& reader, const char* name, int64_t value,
                             const char* other, int64_t other_value) {
  fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}", reader.file().path(),
       reader.key(name), value, reader.key(other), other_value);
}

DeltaNetSpec read_delta_net(const MetadataReader& reader, bool keys_take_turns) {
  DeltaNetSpec net;
  net.n_head_k = reader.size("ssm.group_count", kMostHeads);
  net.n_head = reader.size("ssm.time_step_rank", kMostHeads);
  net.d_k = reader.size("ssm.state_size", kMostHeadDim);
  const int64_t n_values = reader.size("ssm.inner_size", net.n_head * kMostHeadDim);
  if (n_values % net.n_head != 0) {
    fail_sizes(reader, "ssm.inner_size", n_values, "ssm.time_step_rank", net.n_head);
  }
  if (net.n_head % net.n_head_k != 0) {
    fail_sizes(reader, "ssm.time_step_rank", net.n_head, "ssm.group_count", net.n_head_k);
  }
  net.d_v = n_values / net.n_head;
  net.keys_take_turns = keys_take_turns;
  return net;
}

/// Whether heads of keys take turns, as in GGUF files of Qwen 3.5. Hugging Face folders, which are
/// read in place, have the heads of values that share a head of keys together.
bool keys_take_turns(const GgufFile& file) {
  constexpr const char* kKey = "snapkv.delta_net.value_heads";
  const std::string order = file.get_string(kKey, "");
  if (order.empty() || order == "grouped") return order.empty();
  fail(ErrorCode::kBadModel, "{}: {} is \"{}\", supported is \"grouped\"", file.path(), kKey,
       printable(order));
}

int64_t read_kernel_size(const MetadataReader& reader) {
  const int64_t kernel_size = reader.size("ssm.conv_kernel", kMostTaps);
  if (kernel_size >= 2) return kernel_size;
  fail(ErrorCode::kBadModel, "{}: {} must be between 2 and {}, it is {}", reader.file().path(),
       reader.key("ssm.conv_kernel"), kMostTaps, kernel_size);
}

LayerSpec linear_layer(const DeltaNetSpec& net, int64_t kernel_size) {
  LayerSpec layer;
  layer.mixer = TokenMixerKind::delta_net;
  layer.attention = AttentionKind::none;
  layer.compressed = false;
  layer.conv_kernel = kernel_size;
  layer.delta_net = net;
  layer.state = {.n_recurrent = net.n_qkv() * (kernel_size - 1) + net.n_head * net.d_k * net.d_v};
  return layer;
}

LayerSpec attention_layer(const MetadataReader& reader, const ModelSpec& spec, const Heads& heads) {
  if (heads.n_head_kv == 0) {
    fail(ErrorCode::kBadModel, "{}: {} is 0 in a layer with full attention", reader.file().path(),
         reader.key("attention.head_count_kv"));
  }
  LayerSpec layer = full_attention_layer(reader, spec, heads);
  layer.output_gate = true;
  return layer;
}

void refuse_joined_projections(const GgufFile& file) {
  if (file.find_tensor("blk.0.ssm_in.weight") == nullptr) return;
  fail(ErrorCode::kBadModel,
       "{}: tensor blk.0.ssm_in.weight is of a conversion of 2025, which joined what are now "
       "attn_qkv and attn_gate; convert the model again",
       file.path());
}

void make_layers(const MetadataReader& reader, ModelSpec& spec, bool keys_take_turns) {
  refuse_joined_projections(reader.file());
  const DeltaNetSpec net = read_delta_net(reader, keys_take_turns);
  const int64_t kernel_size = read_kernel_size(reader);
  const std::vector<Heads> heads = read_heads(reader, spec.config, false);
  const std::vector<bool> linear = linear_layers(reader, spec.config.n_layer);
  if (std::find(linear.begin(), linear.end(), false) == linear.end()) {
    fail(ErrorCode::kBadModel,
         "{}: {} leaves none of {} layers: a model without attention is not supported",
         reader.file().path(), reader.key("full_attention_interval"), spec.config.n_layer);
  }
  for (int64_t il = 0; il < spec.config.n_layer; ++il) {
    spec.layers.push_back(linear[il] ? linear_layer(net, kernel_size)
                                     : attention_layer(reader, spec, heads[il]));
  }
}

}  // namespace

void make_qwen3next_layers(const MetadataReader& reader, ModelSpec& spec) {
  make_layers(reader, spec, /*keys_take_turns=*/false);
}

void make_qwen35_layers(const MetadataReader& reader, ModelSpec& spec) {
  make_layers(reader, spec, keys_take_turns(reader.file()));
}

}  // namespace snapkv
