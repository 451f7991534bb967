// SPDX-License-Identifier: MIT
// snapkv-make-model SHAPE OUT.gguf [TYPE]: a Llama model of a real shape with random weights, for
// speed and memory runs. Called by people and by benchmarks.
#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "base/error.h"
#include "bench/random_model.h"

namespace {

constexpr std::array kTypes = {snapkv::DType::f32,  snapkv::DType::f16,  snapkv::DType::bf16,
                               snapkv::DType::q8_0, snapkv::DType::q4_0, snapkv::DType::q4_k,
                               snapkv::DType::q5_k, snapkv::DType::q6_k};

snapkv::DType parse_type(std::string_view text) {
  for (const snapkv::DType t : kTypes) {
    if (text == snapkv::name(t)) return t;
  }
  snapkv::fail(snapkv::ErrorCode::kUsage,
               "unknown type \"{}\"; known: f32, f16, bf16, q8_0, q4_0, q4_k, q5_k, q6_k", text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(
        stderr,
        "usage: snapkv-make-model SHAPE OUT.gguf [f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k]\nSHAPE:");
    for (const auto& name : snapkv::random_model_names()) fmt::print(stderr, " {}", name);
    fmt::print(stderr, "\n");
    return 2;
  }
  try {
    snapkv::RandomModelOptions options;
    if (argc == 4) options.dtype = parse_type(argv[3]);
    snapkv::write_random_model(argv[2], snapkv::random_model_shape(argv[1]), options);
  } catch (const snapkv::Error& e) {
    fmt::print(stderr, "snapkv-make-model: {}\n", e.what());
    return static_cast<int>(e.code());
  }
  return 0;
}
