// SPDX-License-Identifier: MIT
#include "engine/prefill/attention_probe.h"

#include <algorithm>

#include "base/error.h"
#include "cache/layer_state.h"
#include "engine/core/finite_check.h"

namespace snapkv {
namespace {

/// The most queries that one op gets, since its memory grows with them. A window fits into one
/// piece, so a probe of the window gives exactly the numbers that the policies rank.
constexpr int64_t kPiece = 512;

/// The queries of KV head g's group in `storage`, contiguous as the op expects them.
Tensor queries_of(const Buffer& storage, const QueryChunk& chunk, int64_t piece, int64_t g) {
  const int64_t head_dim = chunk.q.shape[2], n_group = chunk.q.shape[1] / chunk.k.shape[0];
  const int64_t bytes = piece * n_group * head_dim * int64_t{sizeof(float)};
  return storage.view(DType::f32, {piece, n_group, head_dim}, g * bytes);
}

/// The keys of KV head g, repeated for each query head of its group.
Tensor repeated_keys(const Tensor& k, int64_t g, int64_t n_group) {
  Tensor keys = k.slice(g, g + 1);
  keys.shape[0] = n_group;
  keys.stride[0] = 0;
  return keys;
}

/// How many rows of n_rows are hidden from queries up to the one before `end`, a position.
int64_t n_hidden(const QueryChunk& chunk, int64_t n_rows, int64_t end) {
  if (chunk.chunk == 0) return 0;
  return n_rows - std::min(n_rows, (end - 1) % chunk.chunk + 1);
}

/// The variant for KV head g's query heads only.
AttentionVariant variant_of(AttentionVariant variant, int64_t g, int64_t n_group) {
  if (variant.sinks) variant.sinks = variant.sinks.slice(g * n_group, (g + 1) * n_group);
  return variant;
}

}  // namespace

ProbeObserver::ProbeObserver(const AttentionProbe& probe, int64_t n_tokens, int64_t first_pos)
    : probe_(probe), n_tokens_(n_tokens), first_pos_(first_pos) {
  if (!probe.report) fail(ErrorCode::kUsage, "probe: report is not set");
  for (size_t i = 0; i < probe.ranges.size(); ++i) {
    const AttentionProbe::Range& r = probe.ranges[i];
    if (r.begin >= 0 && r.begin < r.end && r.end <= n_tokens) continue;
    fail(ErrorCode::kUsage,
         "probe: range {} is [{}, {}); it must hold a token and lie within the prompt, [0, {})", i,
         r.begin, r.end, n_tokens);
  }
}

int64_t ProbeObserver::first_token() const {
  int64_t first = n_tokens_;
  for (const AttentionProbe::Range& r : probe_.ranges) first = std::min(first, r.begin);
  return first;
}

void ProbeObserver::begin_layer(int il) {
  il_ = il;
  gathered_.clear();
  gathered_.resize(probe_.ranges.size());
}

void ProbeObserver::observe(Backend& backend, const QueryChunk& chunk) {
  if (chunk.q.shape[0] == 0) return;
  for (size_t i = 0; i < probe_.ranges.size(); ++i) gather(backend, chunk, i);
}

void ProbeObserver::gather(Backend& backend, const QueryChunk& chunk, size_t range) {
  const AttentionProbe::Range& r = probe_.ranges[range];
  Gathered& gathered = gathered_[range];
  const int64_t chunk_begin = chunk.pos.front() - first_pos_;
  const int64_t end = std::min(r.end, chunk.pos.back() + 1 - first_pos_);
  for (int64_t token = std::max(r.begin, chunk_begin); token < end;) {
    int64_t piece = std::min(kPiece, r.end - r.begin - gathered.n_done);
    if (chunk.chunk > 0) {  // queries of one piece see rows from the same one on
      const int64_t first = first_pos_ + r.begin + gathered.n_done;
      piece = std::min(piece, chunk.chunk - first % chunk.chunk);
    }
    const int64_t n = std::min(end - token, piece - gathered.n_pending);
    keep_queries(backend, chunk, token - chunk_begin, n, piece, gathered);
    token += n;
    if (gathered.n_pending < piece) continue;
    add_piece(backend, chunk, range);
    if (token == r.end) report(range);
  }
}

void ProbeObserver::keep_queries(Backend& backend, const QueryChunk& chunk, int64_t first,
                                 int64_t n, int64_t piece, Gathered& gathered) const {
  const int64_t n_head = chunk.q.shape[1], head_dim = chunk.q.shape[2];
  const int64_t n_head_kv = chunk.k.shape[0], n_group = n_head / n_head_kv;
  if (!gathered.queries) {
    gathered.queries =
        backend.allocate(piece * n_head * head_dim * sizeof(float), "queries of a probe");
  }
  for (int64_t g = 0; g < n_head_kv; ++g) {
    const Tensor queries = queries_of(gathered.queries, chunk, piece, g);
    for (int64_t i = 0; i < n; ++i) {
      backend.copy(queries.at<void>(gathered.n_pending + i),
                   chunk.q.at<const void>(first + i, g * n_group),
                   n_group * head_dim * sizeof(float));
    }
  }
  gathered.n_pending += n;
}

void ProbeObserver::add_piece(Backend& backend, const QueryChunk& chunk, size_t range) {
  const AttentionProbe::Range& r = probe_.ranges[range];
  Gathered& gathered = gathered_[range];
  const int64_t n_head = chunk.q.shape[1], n_head_kv = chunk.k.shape[0];
  const int64_t n_group = n_head / n_head_kv, piece = gathered.n_pending;
  const int32_t n_seen = static_cast<int32_t>(r.begin + gathered.n_done + piece);
  const int32_t chunk_end = static_cast<int32_t>(chunk.pos.back() + 1 - first_pos_);
  const int32_t most_rows = *std::max_element(chunk.n_rows.begin(), chunk.n_rows.end());
  const int64_t n_keys = gathered.n_keys = most_rows - chunk_end + r.end;
  const int64_t n_cols = most_rows - chunk_end + n_seen;  // columns that this piece sees
  gathered.sums.resize(n_head * n_keys, 0.0);

  const int64_t first = n_hidden(chunk, n_cols, first_pos_ + n_seen);
  const Buffer storage =
      backend.allocate(n_group * (n_cols - first) * sizeof(float), "sums of a probe");
  const Tensor votes = storage.view(DType::f32, {n_group, n_cols - first});
  std::vector<float> row;
  for (int64_t g = 0; g < n_head_kv; ++g) {
    // the rows up to the piece's last query; the same number for each query head of the group
    const int32_t n_rows = chunk.n_rows[g] - chunk_end + n_seen - static_cast<int32_t>(first);
    const std::vector<int32_t> n_rows_each(n_group, n_rows);
    ops::window_votes(backend, {.q = queries_of(gathered.queries, chunk, piece, g),
                                .k = rows_from(repeated_keys(chunk.k, g, n_group), first),
                                .n_rows = n_rows_each,
                                .scale = chunk.scale,
                                .votes = votes,
                                .whole = true,
                                .variant = variant_of(chunk.variant, g, n_group)});
    row.resize(n_rows);
    for (int64_t i = 0; i < n_group; ++i) {
      backend.download(row.data(), votes.at<const void>(i), row.size() * sizeof(float));
      double* sums = gathered.sums.data() + (g * n_group + i) * n_keys + first;
      for (size_t j = 0; j < row.size(); ++j) sums[j] += row[j];
    }
  }
  gathered.n_done += piece;
  gathered.n_pending = 0;
  gathered.queries = Buffer();
}

void ProbeObserver::report(size_t range) {
  const Gathered done = std::move(gathered_[range]);
  gathered_[range] = Gathered();
  const std::vector<float> sums(done.sums.begin(), done.sums.end());
  require_finite_attention(sums, il_, done.n_keys);
  AttentionProbe::Report report;
  report.il = il_;
  report.range = range;
  report.n_keys = done.n_keys;
  report.n_head = std::ssize(sums) / done.n_keys;
  report.sums = sums;
  probe_.report(report);
}

}  // namespace snapkv
