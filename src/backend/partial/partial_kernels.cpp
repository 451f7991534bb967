// SPDX-License-Identifier: MIT
// For each op: its arguments with every address in device memory replaced by that of a copy. An
// argument of a new type needs an on_host() here; the compiler says so.
#include "backend/partial/partial_kernels.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "backend/partial/host_copies.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "base/log.h"

namespace snapkv {
namespace {

/// Marks weights that the reference has packed, whose storage is in host memory.
struct HostLayout final : PackedLayout {};

// ---------------------------------------------------------------- arguments of one type

template <typename T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T on_host(HostCopies&, T value) {
  return value;
}
template <typename T>
requires(std::is_arithmetic_v<T>) std::span<const T> on_host(HostCopies&,
                                                             std::span<const T> values) {
  return values;
}
const RopeFrequencies& on_host(HostCopies&, const RopeFrequencies& frequencies) {
  return frequencies;
}

Tensor on_host(HostCopies& copies, const Tensor& t) { return copies.tensor(t); }

std::vector<Tensor> on_host(HostCopies& copies, std::span<const Tensor> tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(copies.tensor(t));
  return all;
}

std::vector<Projection> on_host(HostCopies& copies, std::span<const Projection> projections) {
  std::vector<Projection> all(projections.begin(), projections.end());
  for (Projection& p : all) {
    p.w = copies.tensor(p.w);
    p.bias = copies.tensor(p.bias);
    p.out = copies.tensor(p.out);
  }
  return all;
}

PackedWeight& on_host(HostCopies&, PackedWeight& packed) {
  packed.layout = std::make_unique<HostLayout>();
  return packed;
}
const PackedWeight& on_host(HostCopies&, const PackedWeight& packed) {
  SNAPKV_CHECK(dynamic_cast<const HostLayout*>(packed.layout.get()) != nullptr);
  return packed;
}

ExpertChoice on_host(HostCopies& copies, ExpertChoice c) {
  c.logits = copies.tensor(c.logits);
  c.bias = copies.tensor(c.bias);
  c.factors = copies.tensor(c.factors);
  c.experts = copies.tensor(c.experts);
  c.weights = copies.tensor(c.weights);
  return c;
}

PrefillAttention on_host(HostCopies& copies, PrefillAttention a) {
  a.q = copies.tensor(a.q);
  a.k = copies.tensor(a.k);
  a.v = copies.tensor(a.v);
  a.out = copies.tensor(a.out);
  a.variant.sinks = copies.tensor(a.variant.sinks);
  return a;
}

WindowVotes on_host(HostCopies& copies, WindowVotes w) {
  w.q = copies.tensor(w.q);
  w.k = copies.tensor(w.k);
  w.votes = copies.tensor(w.votes);
  w.variant.sinks = copies.tensor(w.variant.sinks);
  return w;
}

RowNorms on_host(HostCopies& copies, RowNorms r) {
  r.x = copies.tensor(r.x);
  r.out = copies.tensor(r.out);
  return r;
}

ChunkScores on_host(HostCopies& copies, ChunkScores c) {
  c.scores = copies.tensor(c.scores);
  c.out = copies.tensor(c.out);
  return c;
}

/// A struct that refers to a list of addresses, with the list.
struct HostDecodeAttention {
  std::vector<HeadRows> heads;
  DecodeAttention a;
  operator const DecodeAttention&() const { return a; }  // NOLINT: ops take it
};
HostDecodeAttention on_host(HostCopies& copies, const DecodeAttention& a) {
  HostDecodeAttention host = {{a.heads.begin(), a.heads.end()}, a};
  for (HeadRows& head : host.heads) {
    const auto* const k = static_cast<const char*>(head.k);
    const auto* const v = static_cast<const char*>(head.v);
    head.k = copies.rows(head.k, head.n_kv * row_bytes(a.kv_dtype, a.q.shape[2]));
    head.v = a.v_in_k ? static_cast<const char*>(head.k) + (v - k)
                      : copies.rows(head.v, head.n_kv * a.v_step());
  }
  host.a.heads = host.heads;
  host.a.q = copies.tensor(a.q);
  host.a.out = copies.tensor(a.out);
  host.a.variant.sinks = copies.tensor(a.variant.sinks);
  host.a.chosen = copies.tensor(a.chosen);
  return host;
}

IndexScores on_host(HostCopies& copies, IndexScores s) {
  s.q = copies.tensor(s.q);
  s.weights = copies.tensor(s.weights);
  s.keys = copies.tensor(s.keys);
  s.out = copies.tensor(s.out);
  return s;
}

struct HostExperts {
  std::vector<Expert> experts;
  ExpertProducts p;
  operator const ExpertProducts&() const { return p; }  // NOLINT: ops take it
};
HostExperts on_host(HostCopies& copies, const ExpertProducts& p) {
  HostExperts host = {{p.experts.begin(), p.experts.end()}, p};
  for (Expert& e : host.experts) {
    for (Tensor* t : {&e.gate, &e.up, &e.down, &e.gate_bias, &e.up_bias, &e.down_bias}) {
      *t = copies.tensor(*t);
    }
  }
  host.p.experts = host.experts;
  ExpertMemory& m = host.p.memory;
  for (Tensor* t : {&host.p.x, &host.p.chosen, &host.p.weights, &host.p.out, &m.x, &m.gate, &m.up,
                    &m.act, &m.out, &m.order, &m.factors}) {
    *t = copies.tensor(*t);
  }
  return host;
}

/// Sequences with states of n_state f32 values.
std::vector<SequenceRows> on_host(HostCopies& copies, std::span<const SequenceRows> sequences,
                                  int64_t n_state) {
  std::vector<SequenceRows> all(sequences.begin(), sequences.end());
  for (SequenceRows& rows : all) {
    rows.from = copies.rows(rows.from, n_state * sizeof(float));
    rows.to = copies.rows(rows.to, n_state * sizeof(float));
  }
  return all;
}

struct HostShortConv {
  std::vector<SequenceRows> sequences;
  ShortConv c;
  operator const ShortConv&() const { return c; }  // NOLINT: ops take it
};
HostShortConv on_host(HostCopies& copies, const ShortConv& c) {
  const int64_t n_state = (c.weight.shape[1] - 1) * c.weight.shape[0];
  HostShortConv host = {on_host(copies, c.sequences, n_state), c};
  host.c.sequences = host.sequences;
  host.c.in = copies.tensor(c.in);
  host.c.weight = copies.tensor(c.weight);
  host.c.out = copies.tensor(c.out);
  if (c.bias) host.c.bias = copies.tensor(c.bias);
  return host;
}

struct HostDeltaRule {
  std::vector<SequenceRows> sequences;
  DeltaRule r;
  operator const DeltaRule&() const { return r; }  // NOLINT: ops take it
};
HostDeltaRule on_host(HostCopies& copies, const DeltaRule& r) {
  HostDeltaRule host = {on_host(copies, r.sequences, r.n_state()), r};
  host.r.sequences = host.sequences;
  for (Tensor* t :
       {&host.r.qkv, &host.r.decay, &host.r.beta, &host.r.rate, &host.r.decay_bias, &host.r.out}) {
    *t = copies.tensor(*t);
  }
  return host;
}

struct HostScan {
  std::vector<SequenceRows> sequences;
  SelectiveScan s;
  operator const SelectiveScan&() const { return s; }  // NOLINT: ops take it
};
HostScan on_host(HostCopies& copies, const SelectiveScan& s) {
  HostScan host = {on_host(copies, s.sequences, s.n_state()), s};
  host.s.sequences = host.sequences;
  for (Tensor* t :
       {&host.s.xbc, &host.s.step, &host.s.rate, &host.s.step_bias, &host.s.skip, &host.s.out}) {
    *t = copies.tensor(*t);
  }
  return host;
}

struct HostChannelScan {
  std::vector<SequenceRows> sequences;
  ChannelScan s;
  operator const ChannelScan&() const { return s; }  // NOLINT: ops take it
};
HostChannelScan on_host(HostCopies& copies, const ChannelScan& s) {
  HostChannelScan host = {on_host(copies, s.sequences, s.n_state()), s};
  host.s.sequences = host.sequences;
  for (Tensor* t :
       {&host.s.x, &host.s.step, &host.s.b, &host.s.c, &host.s.rate, &host.s.skip, &host.s.out}) {
    *t = copies.tensor(*t);
  }
  return host;
}

struct HostTokenShift {
  std::vector<SequenceRows> sequences;
  std::vector<Tensor> added, outs;
  TokenShift s;
  operator const TokenShift&() const { return s; }  // NOLINT: ops take it
};
HostTokenShift on_host(HostCopies& copies, const TokenShift& s) {
  HostTokenShift host = {on_host(copies, s.sequences, s.x.shape[1]), on_host(copies, s.added),
                         on_host(copies, s.outs), s};
  host.s.sequences = host.sequences;
  host.s.added = host.added;
  host.s.outs = host.outs;
  host.s.x = copies.tensor(s.x);
  host.s.mix = copies.tensor(s.mix);
  return host;
}

struct HostWkv {
  std::vector<SequenceRows> sequences;
  Wkv w;
  operator const Wkv&() const { return w; }  // NOLINT: ops take it
};
HostWkv on_host(HostCopies& copies, const Wkv& w) {
  HostWkv host = {on_host(copies, w.sequences, w.n_state()), w};
  host.w.sequences = host.sequences;
  for (Tensor* t : {&host.w.r, &host.w.decay, &host.w.k, &host.w.v, &host.w.rate, &host.w.bonus,
                    &host.w.removal, &host.w.replacement, &host.w.out, &host.w.shares}) {
    *t = copies.tensor(*t);
  }
  return host;
}

struct HostConversion {
  std::vector<const void*> src;
  std::vector<void*> dst;
  RowConversion c;
  operator const RowConversion&() const { return c; }  // NOLINT: ops take it
};
HostConversion on_host(HostCopies& copies, const RowConversion& c) {
  HostConversion host = {{c.src.begin(), c.src.end()}, {c.dst.begin(), c.dst.end()}, c};
  const Buffer rows = c.rows ? copies.content(c.rows) : Buffer();
  for (int64_t h = 0; h < std::ssize(c.n); ++h) {
    int64_t n_src = c.n[h];  // up to the last row that is read
    if (rows && n_src > 0) {
      const int32_t* first =
          rows.view(DType::i32, {c.rows.shape[0], c.rows.shape[1]}).at<int32_t>(h);
      n_src = *std::max_element(first, first + c.n[h]) + 1;
    }
    host.src[h] = copies.rows(c.src[h], n_src * row_bytes(c.src_dtype, c.head_dim));
    host.dst[h] = copies.rows(c.dst[h], c.n[h] * row_bytes(c.dst_dtype, c.head_dim));
  }
  host.c.src = host.src;
  host.c.dst = host.dst;
  host.c.rows = copies.tensor(c.rows);
  return host;
}

/// The rows behind each address of `dst`, of bytes(h) bytes.
template <typename T, typename Bytes>
std::vector<T*> rows_on_host(HostCopies& copies, std::span<T* const> dst, const Bytes& bytes) {
  std::vector<T*> all;
  for (size_t h = 0; h < dst.size(); ++h) all.push_back(copies.rows(dst[h], bytes(h)));
  return all;
}

// ---------------------------------------------------------------- all arguments of an op

template <typename... Arguments>
auto all_on_host(HostCopies& copies, Arguments&... arguments) {
  return std::tuple<decltype(on_host(copies, arguments))...>{on_host(copies, arguments)...};
}

// Lists of addresses, whose rows are as long as other arguments say:

// store_rows
auto all_on_host(HostCopies& copies, const Tensor& src, DType dtype, std::span<void* const> dst) {
  const size_t bytes = src.shape[0] * row_bytes(dtype, src.shape[2]);
  return std::tuple{copies.tensor(src), dtype,
                    rows_on_host(copies, dst, [&](size_t) { return bytes; })};
}

// store_positions
auto all_on_host(HostCopies& copies, std::span<const int32_t> pos, std::span<int32_t* const> dst) {
  return std::tuple{pos, rows_on_host(copies, dst, [&](size_t) { return pos.size_bytes(); })};
}

// gather_rows
auto all_on_host(HostCopies& copies, const Tensor& src, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst) {
  const size_t row = row_bytes(src.dtype, src.shape[2]);
  return std::tuple{copies.tensor(src), copies.tensor(rows), n,
                    rows_on_host(copies, dst, [&](size_t h) { return n[h] * row; })};
}

}  // namespace

void PartialKernels::warn_once(const char* op) {
  const std::lock_guard lock(mutex_);
  if (!warned_.insert(op).second) return;
  log_warn("{} has no {}: the reference computes it in host memory, which is slow",
           backend_.device(), op);
}

template <typename Op, typename... Arguments>
void PartialKernels::run_on_reference(const char* name, const Op& op, Arguments&... arguments) {
  warn_once(name);
  if (!backend_.is_device()) return op(arguments...);
  HostCopies copies(backend_, weights_);
  all_on_host(copies, arguments...);
  copies.download();
  std::apply(op, all_on_host(copies, arguments...));
  copies.upload();
}

#define SNAPKV_OP(name, parameters, names)                                \
  void PartialKernels::name parameters {                                  \
    const auto op = [](auto&&... arguments) { ref::name(arguments...); }; \
    run_on_reference(#name, op, SNAPKV_UNPACK names);                     \
  }
#include "backend/ops.def"

}  // namespace snapkv
