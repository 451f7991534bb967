// SPDX-License-Identifier: MIT
#include "model/config.h"

#include <algorithm>

#include "base/error.h"
#include "format/gguf.h"
#include "model/family.h"
#include "model/metadata_reader.h"

namespace snapkv {
namespace {

void read_heads(const MetadataReader& reader, ModelConfig& c) {
  const std::string& path = reader.file().path();
  c.n_head = reader.size("attention.head_count", 1 << 14);
  c.n_head_kv = reader.size("attention.head_count_kv", c.n_head, 1 << 14);
  if (c.n_head % c.n_head_kv != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}", path,
         reader.key("attention.head_count"), c.n_head, reader.key("attention.head_count_kv"),
         c.n_head_kv);
  }
  if (!reader.has("attention.key_length") && c.n_embd % c.n_head != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}, and {} is missing", path,
         reader.key("embedding_length"), c.n_embd, reader.key("attention.head_count"), c.n_head,
         reader.key("attention.key_length"));
  }
  c.head_dim = reader.size("attention.key_length", std::max<int64_t>(1, c.n_embd / c.n_head), 4096);
  if (c.head_dim % 8 != 0) {  // the kernels' vectors
    fail(ErrorCode::kBadModel, "{}: the head size is {}, supported are multiples of 8", path,
         c.head_dim);
  }
  const int64_t value_length = reader.size("attention.value_length", c.head_dim, 4096);
  if (value_length != c.head_dim) {
    fail(ErrorCode::kBadModel, "{}: {} = {} differs from {} = {}, which is not supported", path,
         reader.key("attention.value_length"), value_length, reader.key("attention.key_length"),
         c.head_dim);
  }
}

}  // namespace

ModelConfig read_config(const MetadataReader& reader, const Family&) {
  const GgufFile& file = reader.file();
  ModelConfig c;
  c.architecture = reader.architecture();
  c.n_layer = reader.size("block_count", 4096);
  c.n_embd = reader.size("embedding_length", 1 << 20);
  c.n_ff = reader.size("feed_forward_length", 1 << 22);
  c.n_ctx_train = reader.size("context_length", INT32_MAX);
  read_heads(reader, c);
  c.norm_eps = static_cast<float>(reader.positive("attention.layer_norm_rms_epsilon", 1e-5));
  const GgufTensor* embd = file.find_tensor("token_embd.weight");
  if (embd == nullptr) {
    fail(ErrorCode::kBadModel, "{}: tensor token_embd.weight is missing", file.path());
  }
  c.n_vocab = embd->tensor.shape[0];
  return c;
}

}  // namespace snapkv
