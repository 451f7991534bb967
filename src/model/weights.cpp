// SPDX-License-Identifier: MIT
#include "model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/half.h"
#include "format/gguf.h"
#include "format/quantize.h"

namespace snapkv {
namespace {

std::string shape_of(std::initializer_list<int64_t> shape) {
  return Tensor(nullptr, DType::f32, shape).shape_string();
}

[[noreturn]] void fail_shape(const GgufFile& file, const std::string& name,
                             const std::string& expected, const Tensor& actual) {
  fail(ErrorCode::kBadModel, "{}: tensor {} has shape {}, expected {}", file.path(), name,
       actual.shape_string(), expected);
}

/// Whether the product of a matrix goes through LinearRunner.
bool may_have_scale(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "attn_q",   "attn_k", "attn_v",   "attn_qkv",       "attn_gate",    "attn_output",
      "ffn_gate", "ffn_up", "ffn_down", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"};
  const std::string_view own = name.substr(name.rfind('.') + 1);  // after "blk.N."
  return std::find(std::begin(kNames), std::end(kNames), own) != std::end(kNames);
}

/// Whether t is [n_rows, n], but for further dimensions of size 1 before the last one.
bool has_rows(const Tensor& t, int64_t n_rows, int64_t n) {
  if (t.rank == 2) return t.shape[0] == n_rows && t.shape[1] == n;
  const auto end = t.shape.begin() + t.rank - 1;
  return t.rank > 2 && t.n_cols() == n && std::find(t.shape.begin(), end, n_rows) != end &&
         t.numel() == n_rows * n;
}

}  // namespace

bool WeightLoader::has(const std::string& tensor_name) const {
  return file_.find_tensor(tensor_name) != nullptr;
}

int64_t WeightLoader::n_rows(const std::string& tensor_name) const {
  const GgufTensor* t = file_.find_tensor(tensor_name);
  return t != nullptr ? t->tensor.shape[0] : 0;
}

const GgufTensor* WeightLoader::find(const std::string& name, Presence presence) {
  const GgufTensor* t = file_.find_tensor(name);
  if (t == nullptr && presence == Presence::required) {
    fail(ErrorCode::kBadModel, "{}: tensor {} is missing", file_.path(), name);
  }
  if (t != nullptr) {
    used_.insert(name);
    loaded_.push_back(t);
  }
  return t;
}

Weight WeightLoader::matrix(const std::string& name, int64_t n_out, int64_t n_in, Presence bias) {
  const std::string full = name + ".weight";
  const Tensor& w = find(full, Presence::required)->tensor;
  if (w.rank != 2 || w.shape[0] != n_out || w.shape[1] != n_in) {
    fail_shape(file_, full, shape_of({n_out, n_in}), w);
  }
  Weight weight = {w, vector(name + ".bias", n_out, bias)};
  if (may_have_scale(name)) read_scale(name, weight);
  return weight;
}

/// Biases are added to what is scaled, so they are divided here.
void WeightLoader::read_scale(const std::string& name, Weight& weight) {
  ignore(name + ".input_scale");  // for activations in FP4, which nothing here rounds them to
  const std::string full = name + ".scale";
  const Tensor value = vector(full, 1, Presence::optional);
  if (!value) return;
  weight.scale = *value.at<const float>(0);
  if (!std::isfinite(weight.scale) || weight.scale <= 0.0f) {
    refuse(full, fmt::format("holds {}, expected a positive number", weight.scale));
  }
  if (!weight.bias || weight.scale == 1.0f) return;
  const int64_t n = weight.bias.numel();
  const RowsFactor factor = {.n_rows = 1, .factor = 1.0f / weight.scale};
  weight.bias = scaled(weight.bias.reshaped({1, n}), {&factor, 1}).reshaped({n});
}

std::vector<Weight> WeightLoader::matrices(const std::string& name, int64_t n, int64_t n_out,
                                           int64_t n_in) {
  const Tensor& all = find(name, Presence::required)->tensor;
  if (all.rank != 3 || all.shape[0] != n || all.shape[1] != n_out || all.shape[2] != n_in) {
    fail_shape(file_, name, shape_of({n, n_out, n_in}), all);
  }
  std::vector<Weight> matrices;
  for (int64_t i = 0; i < n; ++i) {
    matrices.push_back({all.slice(i, i + 1).reshaped({n_out, n_in}), {}});
  }
  return matrices;
}

Tensor WeightLoader::vector(const std::string& name, int64_t n) {
  return vector(name, n, Presence::required);
}

Tensor WeightLoader::vector(const std::string& name, int64_t n, Presence presence) {
  const GgufTensor* t = find(name, presence);
  if (t == nullptr) return {};
  if (t->tensor.numel() != n || t->tensor.n_cols() != n) {
    fail_shape(file_, name, shape_of({n}), t->tensor);
  }
  return as_f32(*t).reshaped({n});
}

Tensor WeightLoader::vectors(const std::string& name, int64_t n_rows, int64_t n,
                             Presence presence) {
  const GgufTensor* t = find(name, presence);
  if (t == nullptr) return {};
  if (!has_rows(t->tensor, n_rows, n)) {
    fail_shape(file_, name, shape_of({n_rows, n}), t->tensor);
  }
  return as_f32(*t).reshaped({n_rows, n});
}

Tensor WeightLoader::as_f32(const GgufTensor& t) {
  const DType type = t.tensor.dtype;
  if (type == DType::f32) return t.tensor;
  if (type != DType::f16 && type != DType::bf16) {
    fail(ErrorCode::kBadModel, "{}: tensor {} has type {}, expected f32, f16 or bf16", file_.path(),
         t.name, snapkv::name(type));
  }
  const int64_t n = t.tensor.numel();
  owned_.push_back(Buffer::host(n * sizeof(float), "weights"));
  const Tensor out = owned_.back().view(DType::f32, {n});
  for (int64_t i = 0; i < n; ++i) {
    *out.at<float>(i) = type == DType::f16 ? to_f32(static_cast<const f16_t*>(t.tensor.data)[i])
                                           : to_f32(static_cast<const bf16_t*>(t.tensor.data)[i]);
  }
  return out;
}

Tensor WeightLoader::transposed(const Tensor& w) {
  const int64_t n_out = w.shape[0], n_in = w.shape[1];
  const DType type = block_size(w.dtype) > 1 ? DType::f16 : w.dtype;
  owned_.push_back(Buffer::host(n_out * row_bytes(type, n_in), "weights"));
  const Tensor out = owned_.back().view(type, {n_in, n_out});
  std::vector<float> values(n_out * n_in), column(n_out);
  for (int64_t i = 0; i < n_out; ++i) {
    widen(w.at<const std::byte>(i), w.dtype, n_in, values.data() + i * n_in);
  }
  for (int64_t j = 0; j < n_in; ++j) {
    for (int64_t i = 0; i < n_out; ++i) column[i] = values[i * n_in + j];
    narrow(column.data(), n_out, type, out.at<std::byte>(j));
  }
  return out;
}

Tensor WeightLoader::scaled(const Tensor& w, std::span<const RowsFactor> factors) {
  if (std::all_of(factors.begin(), factors.end(),
                  [](const RowsFactor& rows) { return rows.factor == 1.0f; })) {
    return w;
  }
  const int64_t n = w.shape[1];
  owned_.push_back(Buffer::host(w.numel() * sizeof(float), "weights"));
  const Tensor out = owned_.back().view(DType::f32, {w.shape[0], n});
  int64_t begin = 0;
  for (const auto& [n_rows, factor] : factors) {
    std::transform(w.at<const float>(begin), w.at<const float>(begin) + n_rows * n,
                   out.at<float>(begin), [f = factor](float value) { return value * f; });
    begin += n_rows;
  }
  SNAPKV_CHECK(begin == w.shape[0]);
  return out;
}

Tensor WeightLoader::stacked(std::span<const Tensor> parts) {
  const int64_t n = parts.front().shape[1];
  int64_t n_rows = 0;
  for (const Tensor& part : parts) n_rows += part.shape[0];
  owned_.push_back(Buffer::host(n_rows * n * sizeof(float), "weights"));
  const Tensor out = owned_.back().view(DType::f32, {n_rows, n});
  float* to = out.at<float>(0);
  for (const Tensor& part : parts) {
    SNAPKV_CHECK(part.dtype == DType::f32 && part.shape[1] == n);
    to = std::copy_n(part.at<const float>(0), part.numel(), to);
  }
  return out;
}

Tensor WeightLoader::ones(int64_t n) {
  owned_.push_back(Buffer::host(n * sizeof(float), "weights"));
  const Tensor out = owned_.back().view(DType::f32, {n});
  std::fill_n(out.at<float>(0), n, 1.0f);
  return out;
}

void WeightLoader::refuse(const std::string& name, const std::string& reason) const {
  fail(ErrorCode::kBadModel, "{}: tensor {} {}", file_.path(), name, reason);
}

std::vector<const GgufTensor*> WeightLoader::take_loaded() { return std::exchange(loaded_, {}); }

void WeightLoader::check_all_used(std::string_view architecture) const {
  for (const GgufTensor& t : file_.tensors()) {
    if (used_.contains(t.name)) continue;
    if (t.name.ends_with(".scale")) {
      fail(ErrorCode::kBadModel,
           "{}: tensor {} scales a matrix, as in files in NVFP4; here the matrices of attention and "
           "of dense networks may be scaled, and experts' up and down, but no others",
           file_.path(), t.name);
    }
    fail(ErrorCode::kBadModel,
         "{}: tensor {} is not part of architecture \"{}\" as it is supported here", file_.path(),
         t.name, architecture);
  }
}

}  // namespace snapkv
