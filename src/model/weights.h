// SPDX-License-Identifier: MIT
// WeightLoader: finds the tensors of a GGUF file by name, checks their shapes, and reports tensors
// that were never asked for.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/tensor.h"
#include "model/family.h"

namespace snapkv {

class GgufFile;
struct GgufTensor;

/// A weight matrix and its optional bias: y = scale (W x (+ b)).
struct Weight {
  Tensor w;            // [n_out, n_in], in the file's type
  Tensor bias;         // [n_out] f32, or empty
  float scale = 1.0f;  // of matrices in NVFP4, whose own scales have few bits

  explicit operator bool() const { return bool{w}; }
  /// The rows that compute outputs [begin, end).
  Weight rows(int64_t begin, int64_t end) const {
    return {w.slice(begin, end), bias ? bias.slice(begin, end) : Tensor(), scale};
  }
};

class WeightLoader {
 public:
  /// `owned` receives memory for vectors that had to be converted to f32. It must outlive the
  /// views.
  WeightLoader(const GgufFile& file, std::vector<Buffer>& owned) : file_(file), owned_(owned) {}

  /// [n_out, n_in] in the file's type; `name` is given without ".weight". Also reads "name.bias" if
  /// it is there, and fails if it is required and missing. The matrices of attention
  /// and of dense networks may have a "name.scale".
  Weight matrix(const std::string& name, int64_t n_out, int64_t n_in,
                Presence bias = Presence::optional);
  /// n matrices [n_out, n_in] of one tensor, whose full name is `name`.
  std::vector<Weight> matrices(const std::string& name, int64_t n, int64_t n_out, int64_t n_in);
  bool has(const std::string& tensor_name) const;
  /// The first size of a tensor; 0 if it is not there.
  int64_t n_rows(const std::string& tensor_name) const;
  /// [n] f32, converted if the file has f16 or bf16. `name` is the tensor's full name.
  Tensor vector(const std::string& name, int64_t n);
  /// Empty if the tensor is optional and not in the file.
  Tensor vector(const std::string& name, int64_t n, Presence presence);
  /// Same for n_rows vectors: [n_rows, n] f32. The tensor may have more dimensions, of size 1.
  Tensor vectors(const std::string& name, int64_t n_rows, int64_t n, Presence presence);
  /// [n_in, n_out] of a matrix [n_out, n_in]: in its type, or in f16 if that is a block type.
  Tensor transposed(const Tensor& w);
  /// Rows [n_rows, n] f32 times factors: the first `n_rows` of these are for so many rows, and so
  /// on. Those of w itself if all factors are 1.
  struct RowsFactor {
    int64_t n_rows = 0;
    float factor = 1.0f;
  };
  Tensor scaled(const Tensor& w, std::span<const RowsFactor> factors);
  /// Rows [n_rows, n] f32 of several tensors, one after the other.
  Tensor stacked(std::span<const Tensor> parts);
  /// [n] f32, all 1: of a norm without weights.
  Tensor ones(int64_t n);
  /// Throws Error{kBadModel} that says what is wrong with a tensor: "has type ...".
  [[noreturn]] void refuse(const std::string& name, const std::string& reason) const;
  /// Marks a tensor as known, though unused.
  void ignore(const std::string& name) { used_.insert(name); }
  /// The tensors that were handed out since the last call, in order.
  std::vector<const GgufTensor*> take_loaded();
  /// Throws Error{kBadModel} naming the first tensor that was never asked for: a model that ignored
  /// it would compute another function.
  void check_all_used(std::string_view architecture) const;

 private:
  const GgufTensor* find(const std::string& name, Presence presence);
  void read_scale(const std::string& name, Weight& weight);
  Tensor as_f32(const GgufTensor& t);

  const GgufFile& file_;
  std::vector<Buffer>& owned_;
  std::set<std::string, std::less<>> used_;
  std::vector<const GgufTensor*> loaded_;
};

}  // namespace snapkv
