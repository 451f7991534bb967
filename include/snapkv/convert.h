// SPDX-License-Identifier: MIT
// Writing a model as one GGUF file, as llama.cpp reads it too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "snapkv/dtype.h"
#include "snapkv/error.h"

namespace snapkv {

struct ConvertOptions {
  std::string from;  ///< a Hugging Face folder, or a GGUF file (of a split one the first part)
  std::string to;    ///< the GGUF file to write
  /// Of the matrices: f32, f16, bf16 or q8_0. Norms, biases and other vectors are f32. A matrix
  /// whose rows are no whole blocks of q8_0 becomes f16, with a warning in the log. If not set: the
  /// type that each matrix has.
  std::optional<DType> type = {};
  bool overwrite = false;  ///< replace `to` where it exists
  /// Called several times a second with the share that is done; return false to stop: the call then
  /// throws Error{kCancelled}.
  std::function<bool(double fraction)> progress = {};
};

struct ConvertResult {
  int64_t n_tensors = 0;
  uint64_t bytes = 0;  ///< of the file
};

/// Writes the model under a temporary name, waits until it is on the disk, and renames it: on any
/// Error nothing is left, and a file that was there before is still there. Models that can't run
/// here are refused. Throws kRuntime (can't be read or written), kBadModel (names file, field,
/// expected, actual; a value that the type can't hold), kUsage (`to` exists, a type that matrices
/// can't be converted to).
ConvertResult convert_model(const ConvertOptions& options);

}  // namespace snapkv
