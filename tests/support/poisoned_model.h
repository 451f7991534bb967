// SPDX-License-Identifier: MIT
// Copies of model files in which single weights are NaN or infinite, as after a damaged download or
// a failed conversion. No command may score the output of such a model as an answer.
#pragma once

#include <cstdint>
#include <string>

namespace snapkv::test {

/// The weights to change and their new value. The tensor must be f32, f16 or bf16.
struct Poison {
  std::string tensor;
  float value = 0;
  int64_t first = 0;  ///< index of the first element to change
  int64_t count = 1;  ///< number of elements; negative: all from the first on
};

/// Copies the file `from` to `to` with that change. A failure ends the test program.
void write_poisoned_model(const std::string& from, const std::string& to, const Poison& poison);

}  // namespace snapkv::test
