// SPDX-License-Identifier: MIT
// WeightLoader: hands the tensors of a GGUF file to an architecture, by name, with shape checks,
// and tells at the end which tensors nobody asked for.
#pragma once

#include <cstdint>
#include <set>
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

/// A weight matrix and its optional bias: y = W x (+ b).
struct Weight {
  Tensor w;     // [n_out, n_in], type of the file
  Tensor bias;  // [n_out] f32, or empty

  explicit operator bool() const { return bool{w}; }
  /// The part that makes outputs [begin, end).
  Weight rows(int64_t begin, int64_t end) const {
    return {w.slice(begin, end), bias ? bias.slice(begin, end) : Tensor()};
  }
};

class WeightLoader {
 public:
  /// `owned` receives memory for vectors that had to be converted to f32; it must outlive the
  /// views.
  WeightLoader(const GgufFile& file, std::vector<Buffer>& owned) : file_(file), owned_(owned) {}

  /// [n_out, n_in] in the file's type; `name` without ".weight". Reads "name.bias" too if it is
  /// there, or fails if it must be.
  Weight matrix(const std::string& name, int64_t n_out, int64_t n_in,
                Presence bias = Presence::optional);
  /// n matrices [n_out, n_in] of one tensor, whose full name is `name`.
  std::vector<Weight> matrices(const std::string& name, int64_t n, int64_t n_out, int64_t n_in);
  bool has(const std::string& tensor_name) const;
  /// [n] f32; converted when the file has f16 or bf16. `name` is the tensor's full name.
  Tensor vector(const std::string& name, int64_t n);
  /// Empty where it is not in the file and may be missing.
  Tensor vector(const std::string& name, int64_t n, Presence presence);
  /// The same with n_rows rows: [n_rows, n] f32.
  Tensor vectors(const std::string& name, int64_t n_rows, int64_t n, Presence presence);
  /// Marks a tensor as known though unused.
  void ignore(const std::string& name) { used_.insert(name); }
  /// The tensors that were handed out since the last call, in order.
  std::vector<const GgufTensor*> take_loaded();
  /// Throws Error{kBadModel} naming the first tensor that nobody asked for: running without it
  /// would compute another function.
  void check_all_used(std::string_view architecture) const;

 private:
  const GgufTensor* find(const std::string& name, Presence presence);
  Tensor as_f32(const GgufTensor& t);

  const GgufFile& file_;
  std::vector<Buffer>& owned_;
  std::set<std::string, std::less<>> used_;
  std::vector<const GgufTensor*> loaded_;
};

}  // namespace snapkv
