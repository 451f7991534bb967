// SPDX-License-Identifier: MIT
// Writes a model as a single GGUF file, which llama.cpp reads too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "snapkv/dtype.h"
#include "snapkv/error.h"

namespace snapkv {

struct ConvertOptions {
  std::string from;  ///< a Hugging Face folder or a GGUF file (first part of a split)
  std::string to;    ///< the GGUF file to write
  /// Type of the matrices: f32, f16, bf16 or q8_0. Norms, biases and other vectors are f32. A
  /// matrix whose rows are not whole blocks of q8_0 becomes f16, with a warning in the log. If not
  /// set, each matrix keeps its type.
  std::optional<DType> type = {};
  bool overwrite = false;  ///< replace `to` if it exists
  /// Called several times a second with the fraction that is done; return false to stop. The call
  /// then throws Error{kCancelled}.
  std::function<bool(double fraction)> progress = {};
};

struct ConvertResult {
  int64_t n_tensors = 0;
  uint64_t bytes = 0;  ///< of the file
};

/// Writes the model under a temporary name, waits until it is on the disk, and renames it. On any
/// Error nothing is left behind, and an old file is still there. Models that cannot run here are
/// rejected. Throws kRuntime (cannot be read or written), kBadModel (names file, field, expected
/// and actual value; also for a value that the type cannot hold), kUsage (`to` exists, or a type
/// that matrices cannot be converted to).
ConvertResult convert_model(const ConvertOptions& options);

}  // namespace snapkv
