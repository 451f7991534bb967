// SPDX-License-Identifier: MIT
// The table of op tests: calls of ops that run on every backend, and whose results op_test.cpp
// compares with ref's. Every op of ops.def has a function here that lists its cases.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {

/// The place where a case runs; can be used as the Backend.
struct Place {
  Backend& backend;
  DType compute;  // of the backend under test; ref, which only has f32, runs once for each

  operator Backend&() const { return backend; }  // NOLINT
  DeviceTensor put(const TestTensor& t) const { return {backend, t}; }
  DeviceTensor zeros(const std::vector<int64_t>& shape, DType dtype = DType::f32) const {
    return put(TestTensor(shape, dtype));
  }
  /// Activations in the compute dtype; ref gets the same rounded values.
  DeviceTensor put_compute(const TestTensor& t) const {
    return put(t.to(compute).to(backend.compute_dtype()));
  }
  /// The type of a result that may be rounded; ref's results are never rounded.
  DType result(DType dtype) const { return is_ref() ? DType::f32 : dtype; }
  bool is_cuda() const { return backend.device() == "cuda"; }
  /// Whether project_packed() rounds activations to 8 bits for weights of this type.
  bool rounds_to_bytes(DType weight) const { return backend.products(weight).packed_in_bytes; }
  bool is_ref() const { return backend.device() == "reference"; }
};

/// The tensors that an op wrote.
struct Results : std::vector<TestTensor> {
  Results() = default;
  Results(TestTensor t) { push_back(std::move(t)); }   // NOLINT: most ops write one tensor
  Results(const std::vector<DeviceTensor>& tensors) {  // NOLINT
    for (const DeviceTensor& t : tensors) push_back(t.host());
  }
};

/// How far a backend's results may differ from ref's.
struct Bound {
  Tolerance each;     // for every value; zero: the same value, and a NaN where ref has one
  double norm = 0;    // if > 0, the limit for ||difference|| / ||expected|| instead
  bool bits = false;  // if true, the bytes must be equal instead

  static Bound same_bits() { return {.each = {}, .bits = true}; }
  static Bound of_norm(double norm) { return {.each = {}, .norm = norm}; }
};

struct OpCase {
  using Run = std::function<Results(const Place&)>;
  using BoundAt = std::function<Bound(const Place&)>;

  OpCase(std::string name_, Run run_, Tolerance each)
      : OpCase(std::move(name_), std::move(run_), Bound{.each = each}) {}
  OpCase(std::string name_, Run run_, Bound b)
      : OpCase(std::move(name_), std::move(run_), [b](const Place&) { return b; }) {}
  OpCase(std::string name_, Run run_, BoundAt bound_)
      : name(std::move(name_)), run(std::move(run_)), bound(std::move(bound_)) {}

  /// Adds another run that must give the same bits on the same backend: the same call in pieces,
  /// with another memory layout, ...
  OpCase& equals(Run other) {
    same = std::move(other);
    return *this;
  }
  /// Skips the case for all but the best instruction set, and for an emulated device.
  OpCase& only_fast() {
    large = true;
    return *this;
  }
  /// Skips the cpu: its kernels have no vectors for this shape.
  OpCase& not_on_cpu() {
    on_cpu = false;
    return *this;
  }
  /// Skips CUDA: its kernels lack what the case asks for.
  OpCase& not_on_cuda() {
    on_cuda = false;
    return *this;
  }
  bool runs_on(const Place& place) const {
    return (on_cpu || place.backend.device() != "cpu") && (on_cuda || !place.is_cuda());
  }

  std::string name;
  Run run;
  BoundAt bound;
  Run same;
  bool large = false;
  bool on_cpu = true;
  bool on_cuda = true;
};
using OpCases = std::vector<OpCase>;

/// One rounding to bf16's 8 significant bits: at most 2^-9 of the value, plus a tie that an earlier
/// error tips over.
inline constexpr double kBf16 = 0x1p-8 * 1.01;

/// The bound for f32 results, and for results that are rounded to bf16.
inline OpCase::BoundAt rounded_if(bool to_bf16, Tolerance f32) {
  return [=](const Place& at) -> Bound {
    const bool rounds = to_bf16 && at.compute == DType::bf16;
    return {.each = {f32.abs, rounds ? kBf16 : f32.rel}};
  };
}

inline int64_t sum(const std::vector<int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

// The cases of each op, defined in op_cases_*.cpp.
#define SNAPKV_OP(op, parameters, arguments) OpCases op##_cases();
#include "backend/ops.def"

struct OpRow {
  const char* op;
  OpCases (*cases)();
};
inline void PrintTo(const OpRow& row, std::ostream* out) { *out << row.op; }
#define SNAPKV_OP(op, parameters, arguments) {#op, op##_cases},
inline constexpr OpRow kOps[] = {
#include "backend/ops.def"
};

}  // namespace snapkv::test
