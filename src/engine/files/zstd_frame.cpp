// SPDX-License-Identifier: MIT
#include "engine/files/zstd_frame.h"

#include <zstd.h>

#include "base/error.h"
#include "engine/core/option_range.h"
#include "snapkv/limits.h"

namespace snapkv {

void check_zstd_level(int level) { require_range("zstd_level", level, 0, kMostZstdLevel); }

std::vector<std::byte> make_zstd_frame(std::span<const std::byte> bytes, int level) {
  std::vector<std::byte> frame(ZSTD_compressBound(bytes.size()));
  const size_t n = ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(n) != 0) {
    fail(ErrorCode::kRuntime, "zstd can't compress {} bytes: {}", bytes.size(),
         ZSTD_getErrorName(n));
  }
  frame.resize(n);
  return frame;
}

Buffer decode_zstd_frame(std::span<const std::byte> frame, size_t n_bytes, const std::string& path,
                         const std::string& what) {
  const unsigned long long said = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (said == ZSTD_CONTENTSIZE_ERROR || said == ZSTD_CONTENTSIZE_UNKNOWN) {
    fail(ErrorCode::kBadModel, "'{}': {} is not a zstd frame that says its size: it is damaged",
         path, what);
  }
  if (said != n_bytes) {
    fail(ErrorCode::kBadModel, "'{}': {} has {} bytes, its zstd frame {}: it is damaged", path,
         what, n_bytes, said);
  }
  const size_t stored = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(stored) != 0 || stored != frame.size()) {
    fail(ErrorCode::kBadModel, "'{}': the zstd frame of {} does not take the {} bytes that it has",
         path, what, frame.size());
  }
  Buffer decoded = Buffer::host(n_bytes, "a layer of a file with zstd");
  const size_t n = ZSTD_decompress(decoded.data(), n_bytes, frame.data(), frame.size());
  if (ZSTD_isError(n) != 0) {
    fail(ErrorCode::kBadModel, "'{}': the zstd frame of {} is damaged: {}", path, what,
         ZSTD_getErrorName(n));
  }
  if (n != n_bytes) {
    fail(ErrorCode::kBadModel, "'{}': the zstd frame of {} holds {} bytes, expected {}", path, what,
         n, n_bytes);
  }
  return decoded;
}

}  // namespace snapkv
