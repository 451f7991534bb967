// SPDX-License-Identifier: MIT
// Copies of model files in which single weights are NaN or infinite: what a damaged download or a
// failed conversion leaves, and what no command may score as if it were an answer.
#pragma once

#include <cstdint>
#include <string>

namespace snapkv::test {

/// Which weight becomes which value. Tensors in f32, f16 or bf16.
struct Poison {
  std::string tensor;
  float value = 0;
  int64_t first = 0;  ///< index of the first element to change
  int64_t count = 1;  ///< elements; negative: all from the first on
};

/// Writes `to`, the file `from` with that change. A failure ends the test program.
void write_poisoned_model(const std::string& from, const std::string& to, const Poison& poison);

}  // namespace snapkv::test
