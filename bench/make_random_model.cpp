// SPDX-License-Identifier: MIT
// snapkv-make-model SHAPE OUT.gguf [TYPE [N_LAYER]]: writes a model of a real shape with random
// weights, for speed and memory runs.
#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"
#include "bench/random_model.h"

namespace {

std::string type_names(const char* separator) {
  std::string names;
  for (const snapkv::DType t : snapkv::kWeightTypes) {
    names += names.empty() ? "" : separator;
    names += snapkv::name(t);
  }
  return names;
}

snapkv::DType parse_type(std::string_view text) {
  for (const snapkv::DType t : snapkv::kWeightTypes) {
    if (text == snapkv::name(t)) return t;
  }
  snapkv::fail(snapkv::ErrorCode::kUsage, "unknown type \"{}\"; known: {}", text, type_names(", "));
}

int64_t parse_layers(std::string_view text) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc() && end == text.data() + text.size() && n > 0 && n <= 1000) return n;
  snapkv::fail(snapkv::ErrorCode::kUsage, "N_LAYER is \"{}\", it must be a number from 1 to 1000",
               text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    fmt::print(stderr,
               "usage: snapkv-make-model SHAPE OUT.gguf [{} [N_LAYER]]\n"
               "N_LAYER: instead of the shape's\nSHAPE:",
               type_names("|"));
    for (const auto& name : snapkv::random_model_names()) fmt::print(stderr, " {}", name);
    fmt::print(stderr, "\n");
    return 2;
  }
  try {
    snapkv::RandomModelOptions options;
    if (argc >= 4) options.dtype = parse_type(argv[3]);
    snapkv::RandomModelShape shape = snapkv::random_model_shape(argv[1]);
    if (argc == 5) shape.n_layer = parse_layers(argv[4]);
    snapkv::write_random_model(argv[2], shape, options);
  } catch (const snapkv::Error& e) {
    fmt::print(stderr, "snapkv-make-model: {}\n", e.what());
    return static_cast<int>(e.code());
  }
  return 0;
}
