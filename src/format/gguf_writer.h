// SPDX-License-Identifier: MIT
// GgufFileWriter: writes a GGUF v3 file of any size from front to back. The layout is in gguf.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "format/gguf.h"

namespace snapkv {

/// A tensor of a file to be written. Its rows are whole blocks of `dtype`.
struct GgufPlan {
  std::string name;
  std::vector<int64_t> shape;  // outermost first
  DType dtype = DType::f32;

  uint64_t bytes() const;
};

class GgufFileWriter {
 public:
  /// Writes everything before the data. `file` must outlive this object.
  GgufFileWriter(AtomicFile& file, const std::map<std::string, GgufValue, std::less<>>& metadata,
                 std::vector<GgufPlan> tensors);

  /// Writes the next bytes of the tensors' data, in order; a call must not reach into the next
  /// tensor.
  void write(std::span<const std::byte> bytes);
  /// Whether all data have been written.
  bool complete() const { return at_ == tensors_.size(); }

 private:
  AtomicFile& file_;
  std::vector<GgufPlan> tensors_;
  size_t at_ = 0;         // the tensor whose data come next
  uint64_t written_ = 0;  // bytes of its data
};

}  // namespace snapkv
