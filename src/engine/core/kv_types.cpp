// SPDX-License-Identifier: MIT
#include "engine/core/kv_types.h"

#include <iterator>

#include "base/error.h"
#include "engine/core/option_range.h"

namespace snapkv {

void validate_kv_type(DType kv_type, const ModelInfo& info) {
  require_range("kv_type", static_cast<int>(kv_type), 0, std::ssize(kDTypes) - 1);
  if (kv_type != DType::f32 && kv_type != DType::f16 && kv_type != DType::bf16 &&
      kv_type != DType::q8_0) {
    fail(ErrorCode::kUsage, "{} is {}; it must be f32, f16, bf16 or q8_0", OptionName("kv_type"),
         name(kv_type));
  }
  for (const LayerInfo& layer : info.layers) {
    if (layer.head_dim % block_size(kv_type) == 0) continue;
    fail(ErrorCode::kUsage, "{} {} needs a head_dim that is a multiple of {}, the model's is {}",
         OptionName("kv_type"), name(kv_type), block_size(kv_type), layer.head_dim);
  }
}

}  // namespace snapkv
