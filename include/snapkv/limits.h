// SPDX-License-Identifier: MIT
// The largest values that options accept. They are far above what any machine can do, and low
// enough that sizes computed from them do not overflow. A larger value is a mistake and is
// rejected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace snapkv {

/// Tokens, and rows of any kind; positions have 32 bits.
inline constexpr int64_t kMostTokens = int64_t{1} << 30;
/// SessionOptions::chunk
inline constexpr int64_t kMostChunk = int64_t{1} << 20;
/// Tokens that one decode step appends to a session.
inline constexpr int64_t kMostStepTokens = 16;
/// SessionOptions::decode_reserve
inline constexpr int64_t kMostReserve = int64_t{1} << 20;
/// Heads of one layer.
inline constexpr int64_t kMostHeads = int64_t{1} << 16;
/// Threads of a model or a compressor.
inline constexpr int kMostThreads = 4096;
/// Bytes: 1 EiB.
inline constexpr size_t kMostBytes = size_t{1} << 60;

}  // namespace snapkv
