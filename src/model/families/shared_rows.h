// SPDX-License-Identifier: MIT
// What Gemma 3n and Gemma 4 have in common: the last layers read the rows of earlier ones, and each
// layer says whether it has a sliding window.
#pragma once

#include <cstdint>
#include <vector>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Whether each layer has a sliding window, by .attention.sliding_window_pattern.
std::vector<bool> read_window_flags(const MetadataReader& reader, int64_t n_layer);

/// .attention.shared_kv_layers: how many of the last layers read rows of earlier ones. Gemma 3n's
/// files have it as a float.
int64_t read_n_shared(const MetadataReader& reader, int64_t n_layer);

/// Makes layer il read the rows of the last of the first n_own layers that has a window like it, or
/// none like it.
void share_rows(const MetadataReader& reader, const std::vector<bool>& windowed, int64_t n_own,
                int64_t il, ModelSpec& spec);

}  // namespace snapkv
