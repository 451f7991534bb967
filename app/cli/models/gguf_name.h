// SPDX-License-Identifier: MIT
// What the names of GGUF files say: the quantization, and which part of a split file it is.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::cli {

/// "model-00002-of-00003.gguf" is part 2 of 3 of "model.gguf"; other files are part 1 of 1.
struct SplitName {
  std::string name;
  int part = 1, count = 1;
};
SplitName split_name(const std::string& path);

enum class QuantPlace { end, middle };
/// Whether the file's name has the quantization as a word, in any letter case, at its end
/// ("model-Q4_K_M.gguf", "model.q4_k_m.gguf") or elsewhere ("model-Q4_K_M-imat.gguf").
bool has_quant(std::string_view path, std::string_view quant, QuantPlace place);

}  // namespace snapkv::cli
