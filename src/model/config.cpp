// SPDX-License-Identifier: MIT
#include "model/config.h"

#include <cmath>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

class ConfigReader {
 public:
  explicit ConfigReader(const GgufFile& file)
      : file_(file), prefix_(file.get_string("general.architecture") + ".") {}

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  int64_t size(std::string_view name, int64_t max) const {
    return checked(name, file_.get_uint(key(name)), max);
  }
  int64_t size(std::string_view name, int64_t otherwise, int64_t max) const {
    return checked(name, file_.get_uint(key(name), static_cast<uint64_t>(otherwise)), max);
  }
  /// Positive, and neither 0 nor infinite in f32, which the kernels compute with.
  double number(std::string_view name, double otherwise) const {
    const double v = file_.get_float(key(name), otherwise);
    const auto as_f32 = static_cast<float>(v);
    if (!std::isfinite(as_f32) || as_f32 <= 0) {
      fail(ErrorCode::kBadModel, "{}: {} must be a positive number that f32 can hold, it is {}",
           file_.path(), key(name), v);
    }
    return v;
  }

 private:
  int64_t checked(std::string_view name, uint64_t v, int64_t max) const {
    if (v < 1 || v > static_cast<uint64_t>(max)) {
      fail(ErrorCode::kBadModel, "{}: {} must be between 1 and {}, it is {}", file_.path(),
           key(name), max, v);
    }
    return static_cast<int64_t>(v);
  }

  const GgufFile& file_;
  std::string prefix_;
};

void read_rope_scaling(const GgufFile& file, const ConfigReader& reader, ModelConfig& config) {
  const std::string type = file.get_string(reader.key("rope.scaling.type"), "");
  const bool legacy = file.has(reader.key("rope.scale_linear"));
  if (type.empty() && legacy) {  // files of 2023 have only this key
    config.rope_scaling_factor = reader.number("rope.scale_linear", 1.0);
  } else if (type == "linear") {
    config.rope_scaling_factor = reader.number("rope.scaling.factor", 1.0);
  } else if (!type.empty() && type != "none") {
    fail(ErrorCode::kBadModel, "{}: {} is \"{}\"; supported are \"none\" and \"linear\"",
         file.path(), reader.key("rope.scaling.type"), type);
  }
  if (config.rope_scaling_factor != 1.0) config.rope_scaling = RopeScaling::linear;
}

}  // namespace

ModelConfig read_config(const GgufFile& file) {
  const ConfigReader reader(file);
  ModelConfig c;
  c.architecture = file.get_string("general.architecture");
  c.n_layer = reader.size("block_count", 4096);
  c.n_embd = reader.size("embedding_length", 1 << 20);
  c.n_ff = reader.size("feed_forward_length", 1 << 22);
  c.n_ctx_train = reader.size("context_length", INT32_MAX);
  c.n_head = reader.size("attention.head_count", 1 << 14);
  c.n_head_kv = reader.size("attention.head_count_kv", c.n_head, 1 << 14);
  if (c.n_head % c.n_head_kv != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}", file.path(),
         reader.key("attention.head_count"), c.n_head, reader.key("attention.head_count_kv"),
         c.n_head_kv);
  }
  if (!file.has(reader.key("attention.key_length")) && c.n_embd % c.n_head != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}, and {} is missing",
         file.path(), reader.key("embedding_length"), c.n_embd, reader.key("attention.head_count"),
         c.n_head, reader.key("attention.key_length"));
  }
  c.head_dim = reader.size("attention.key_length", std::max<int64_t>(1, c.n_embd / c.n_head), 4096);
  if (c.head_dim % 8 != 0) {  // the kernels' vectors
    fail(ErrorCode::kBadModel, "{}: the head size is {}, supported are multiples of 8", file.path(),
         c.head_dim);
  }
  const int64_t value_length = reader.size("attention.value_length", c.head_dim, 4096);
  if (value_length != c.head_dim) {
    fail(ErrorCode::kBadModel, "{}: {} = {} differs from {} = {}, which is not supported",
         file.path(), reader.key("attention.value_length"), value_length,
         reader.key("attention.key_length"), c.head_dim);
  }
  c.n_rot = reader.size("rope.dimension_count", c.head_dim, c.head_dim);
  if (c.n_rot % 2 != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} must be even", file.path(),
         reader.key("rope.dimension_count"), c.n_rot);
  }
  c.rms_eps = static_cast<float>(reader.number("attention.layer_norm_rms_epsilon", 1e-5));
  c.rope_freq_base = reader.number("rope.freq_base", 10000.0);
  read_rope_scaling(file, reader, c);
  c.attention_scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  return c;
}

}  // namespace snapkv
