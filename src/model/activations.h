// SPDX-License-Identifier: MIT
// The tensors that the parts of a model compute in. Each part asks an ActivationPlan for its own
// when it is made; an ActivationBuffer is their memory, reused from layer to layer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv {

enum class ActivationType {
  f32,
  i32,
  input,  // LinearRunner::input_dtype(): what products read
};

/// A tensor that a part of a model has asked for: [n, n_cols], or [n, n_head, n_cols].
struct ActivationTensor {
  int memory = -1;  // ActivationPlan's; -1: none was asked for
  int64_t n_head = 0;
  int64_t n_cols = 0;

  explicit operator bool() const { return memory >= 0; }
};

class ActivationPlan {
 public:
  /// The most rows that a chunk of n tokens needs.
  using Rows = std::function<int64_t(int64_t n_tokens)>;

  /// A tensor [n, n_cols]. Tensors of the same name, which have one type, share their memory: those
  /// of blocks that are computed one after the other, in one layer or in several. `rows`: empty if
  /// each token needs one.
  ActivationTensor add(std::string_view name, int64_t n_cols,
                       ActivationType type = ActivationType::f32, Rows rows = {});
  /// A tensor [n, n_head, head_dim].
  ActivationTensor add_heads(std::string_view name, int64_t n_head, int64_t head_dim,
                             ActivationType type = ActivationType::f32);

 private:
  friend class ActivationBuffer;
  struct Memory {
    std::string name;
    ActivationType type = ActivationType::f32;
    int64_t n_cols = 0;  // of the widest tensor
    Rows rows;
  };
  std::vector<Memory> memories_;
};

/// Memory for the activations of chunks of up to n_tokens.
class ActivationBuffer {
 public:
  static constexpr const char* kLabel = "activations";

  /// Grows when needed. `input`: LinearRunner::input_dtype().
  void ensure(Backend& backend, const ActivationPlan& plan, int64_t n_tokens, DType input);

  /// Where they are: the same as long as nothing has grown.
  const void* data() const { return storage_.data(); }
  /// The first n rows of a tensor.
  Tensor get(const ActivationTensor& tensor, int64_t n) const;

 private:
  struct Place {
    size_t offset = 0;
    int64_t n_rows = 0;
    DType dtype = DType::f32;
  };
  Buffer storage_;
  int64_t n_tokens_ = 0;
  DType input_ = DType::f32;
  std::vector<Place> places_;  // of the plan's memories
};

}  // namespace snapkv
