// SPDX-License-Identifier: MIT
// pack() and project_packed(): many rows, through oneDNN. x [n, n_in] times w^T, where the library
// sees w^T as its [n_in, n_out] "weights" in a blocked layout that it chose.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "backend/cpu/convert.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/pack.h"
#include "base/error.h"

namespace snapkv::cpu {
namespace {

using dnnl::memory;

constexpr int64_t kTypicalRows = 512;  // for which the library chooses the layout of weights
/// Rows of a weight matrix converted at a time where the library does the blocking; a multiple of
/// any block's size.
constexpr int64_t kReorderRows = 512;

const dnnl::engine& engine() {
  static const dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

memory::data_type to_dnnl(DType t) {
  return t == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// Calls f and turns the library's exceptions into ours.
template <typename F>
auto checked(const char* what, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) fail(ErrorCode::kDoesNotFit, "{}: out of memory", what);
    fail(ErrorCode::kRuntime, "{}: oneDNN: {}", what, e.what());
  }
}

/// PackedWeight::state.
struct WeightLayout {
  memory::desc desc;  // [n_in, n_out] in the compute type
};

dnnl::primitive_attr make_attr(DType compute, bool accumulate) {
  dnnl::primitive_attr attr;
  if (compute == DType::f32) attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0f);
    attr.set_post_ops(post_ops);
  }
  return attr;
}

/// The layout that oneDNN prefers.
memory::desc choose_layout(DType compute, int64_t n_out, int64_t n_in) {
  const auto type = to_dnnl(compute);
  const memory::desc x({kTypicalRows, n_in}, type, memory::format_tag::ab);
  const memory::desc w({n_in, n_out}, type, memory::format_tag::any);
  const memory::desc out({kTypicalRows, n_out}, type, memory::format_tag::ab);
  const dnnl::matmul::desc desc(x, w, out);
  return dnnl::matmul::primitive_desc(desc, make_attr(compute, false), engine()).weights_desc();
}

/// Is it the layout of pack.h?
bool is_panels(const memory::desc& layout, DType compute, int64_t n_out, int64_t n_in) {
  const bool bf16 = compute == DType::bf16;
  const auto tag = bf16 ? memory::format_tag::BA16a64b2a : memory::format_tag::BA16a64b;
  return layout == memory::desc({n_in, n_out}, to_dnnl(compute), tag) &&
         layout.get_size() == packed_bytes(compute, n_out, n_in);
}

/// Lets the library bring the weights into its layout, some rows at a time.
void pack_by_library(const CpuContext& ctx, const Tensor& weight, const memory::desc& layout,
                     void* dst) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
  const int64_t element = block_bytes(ctx.compute);
  const int64_t n_rows = std::min(kReorderRows, n_out);
  const Buffer rows = Buffer::host(static_cast<size_t>(n_rows * n_in * element), "weight rows");
  const memory target(layout, engine(), dst);
  dnnl::stream stream(engine());
  // the last block's padding
  std::memset(dst, 0, layout.get_size());
  for (int64_t begin = 0; begin < n_out; begin += n_rows) {
    const int64_t n = std::min(n_rows, n_out - begin);
#pragma omp parallel for num_threads(ctx.n_threads)
    for (int64_t r = 0; r < n; ++r) {
      char* row = static_cast<char*>(rows.data()) + r * n_in * element;
      const void* src = weight.at<const void>(begin + r);
      if (ctx.compute == DType::bf16) {
        convert_row(src, weight.dtype, n_in, reinterpret_cast<bf16_t*>(row));
      } else {
        convert_row(src, weight.dtype, n_in, reinterpret_cast<float*>(row));
      }
    }
    const memory::desc src_desc({n_in, n}, to_dnnl(ctx.compute), memory::format_tag::ba);
    const memory src(src_desc, engine(), rows.data());
    const memory part(layout.submemory_desc({n_in, n}, {0, begin}), engine(), dst);
    dnnl::reorder(src, part).execute(stream, const_cast<memory&>(src), const_cast<memory&>(part));
    stream.wait();
  }
}

/// What a product depends on, apart from addresses.
struct MatmulKey {
  int64_t n, n_in, n_out, x_stride, out_stride;
  DType compute, out;
  bool bias, accumulate;
  int n_threads;
  auto tie() const {
    return std::tie(n, n_in, n_out, x_stride, out_stride, compute, out, bias, accumulate,
                    n_threads);
  }
  bool operator<(const MatmulKey& other) const { return tie() < other.tie(); }
};

dnnl::matmul make_matmul(const MatmulKey& key, const memory::desc& weights) {
  const memory::desc x({key.n, key.n_in}, to_dnnl(key.compute), {key.x_stride, 1});
  const memory::desc out({key.n, key.n_out}, to_dnnl(key.out), {key.out_stride, 1});
  const memory::desc bias({1, key.n_out}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul::desc desc =
      key.bias ? dnnl::matmul::desc(x, weights, bias, out) : dnnl::matmul::desc(x, weights, out);
  return dnnl::matmul({desc, make_attr(key.compute, key.accumulate), engine()});
}

/// Created products: creation takes 0.1 ms and more. Prompts of a thousand lengths may pass in a
/// server's life, so the cache is emptied when full.
dnnl::matmul cached_matmul(const MatmulKey& key, const memory::desc& weights) {
  constexpr size_t kCapacity = 512;
  static std::mutex mutex;
  static std::map<MatmulKey, std::pair<memory::desc, dnnl::matmul>> cache;
  const std::lock_guard lock(mutex);
  const auto found = cache.find(key);
  if (found != cache.end() && found->second.first == weights) return found->second.second;
  if (cache.size() >= kCapacity) cache.clear();
  const dnnl::matmul matmul = make_matmul(key, weights);
  cache.insert_or_assign(key, std::pair(weights, matmul));
  return matmul;
}

}  // namespace

bool multiplies_bf16() {
  static const bool result = [] {
    try {
      choose_layout(DType::bf16, kPanelRows, kPanelRows);
      return true;
    } catch (const dnnl::error&) {  // no implementation
      return false;
    }
  }();
  return result;
}

void pack(const CpuContext& ctx, const Tensor& weight, PackedWeight& packed) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
  checked("packing weights", [&] {
    const memory::desc layout = choose_layout(ctx.compute, n_out, n_in);
    const size_t bytes = layout.get_size();
    if (packed.storage.bytes() < bytes) {
      packed.storage = Buffer();  // free first: the contents need not survive
      packed.storage = Buffer::host(bytes, "packed weights");
    }
    if (is_panels(layout, ctx.compute, n_out, n_in)) {
      pack_panels(ctx, weight, packed.storage.data());
    } else {
      pack_by_library(ctx, weight, layout, packed.storage.data());
    }
    packed.n_out = n_out;
    packed.n_in = n_in;
    packed.state = std::make_shared<WeightLayout>(WeightLayout{layout});
  });
}

void project_packed(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate) {
  if (x.shape[0] == 0) return;
  const memory::desc& layout = static_cast<const WeightLayout*>(weight.state.get())->desc;
  const MatmulKey key{.n = x.shape[0],
                      .n_in = weight.n_in,
                      .n_out = weight.n_out,
                      .x_stride = x.stride[0] / block_bytes(x.dtype),
                      .out_stride = out.stride[0] / block_bytes(out.dtype),
                      .compute = ctx.compute,
                      .out = out.dtype,
                      .bias = static_cast<bool>(bias),
                      .accumulate = accumulate,
                      .n_threads = ctx.n_threads};
  checked("matrix product", [&] {
    if (omp_get_max_threads() != ctx.n_threads) omp_set_num_threads(ctx.n_threads);
    const dnnl::matmul matmul = cached_matmul(key, layout);
    const memory::desc x_desc({key.n, key.n_in}, to_dnnl(x.dtype), {key.x_stride, 1});
    const memory::desc out_desc({key.n, key.n_out}, to_dnnl(out.dtype), {key.out_stride, 1});
    std::unordered_map<int, memory> args{
        {DNNL_ARG_SRC, memory(x_desc, engine(), x.data)},
        {DNNL_ARG_WEIGHTS, memory(layout, engine(), weight.storage.data())},
        {DNNL_ARG_DST, memory(out_desc, engine(), out.data)}};
    if (bias) {
      const memory::desc desc({1, key.n_out}, memory::data_type::f32, memory::format_tag::ab);
      args.emplace(DNNL_ARG_BIAS, memory(desc, engine(), bias.data));
    }
    dnnl::stream stream(engine());
    matmul.execute(stream, args);
    stream.wait();
  });
}

}  // namespace snapkv::cpu
