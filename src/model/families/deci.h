// SPDX-License-Identifier: MIT
// Llama Nemotron Super and Ultra, Nemotron 51B, DeciLM: Llamas whose layers a search has made
// different (Puzzle, arXiv 2411.19146).
#pragma once

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers of `deci`. .attention.head_count, .attention.head_count_kv and
/// .feed_forward_length are of each layer. Without heads a layer has no attention, with heads of
/// queries alone a matrix in its place, and with a width of 0 no feed-forward network.
void make_deci_layers(const MetadataReader& reader, ModelSpec& spec);

}  // namespace snapkv
