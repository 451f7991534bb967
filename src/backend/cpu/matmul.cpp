// SPDX-License-Identifier: MIT
// pack() and project_packed(): many rows, through oneDNN. x [n, n_in] times w^T, where the library
// sees w^T as its [n_in, n_out] "weights".
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "backend/cpu/convert.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/omp_threads.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/scratch.h"
#include "base/error.h"

namespace snapkv::cpu {
namespace {

using dnnl::memory;

constexpr int64_t kTypicalRows = 512;  // for which the library chooses the layout of weights

// Weights are packed in one of two layouts, whichever the library's best product for this processor
// reads: the panels of pack.h (AVX-512), then the library shares one product out to all threads; or
// plain rows, where it would split sums by the number of threads. There, tiles of this fixed size
// are multiplied, each by one thread, so that results do not depend on how many there are.
constexpr int64_t kTileRows = 256;
constexpr int64_t kTileCols = 256;

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

memory::desc panels_desc(DType compute, int64_t n_out, int64_t n_in) {
  const auto tag = compute == DType::bf16 ? memory::format_tag::BA16a64b2a  //
                                          : memory::format_tag::BA16a64b;
  return {{n_in, n_out}, to_dnnl(compute), tag};
}

struct CpuPackedLayout : PackedLayout {
  bool panels = false;
};

dnnl::primitive_attr make_attr(DType compute, bool accumulate) {
  dnnl::primitive_attr attr;
  // Scratch memory from the caller: the library's own belongs to the thread that made a product.
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (compute == DType::f32) attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0f);
    attr.set_post_ops(post_ops);
  }
  return attr;
}

/// Does the library, when free to choose, want panels?
bool prefers_panels(DType compute, int64_t n_out, int64_t n_in) {
  const auto type = to_dnnl(compute);
  const memory::desc x({kTypicalRows, n_in}, type, memory::format_tag::ab);
  const memory::desc w({n_in, n_out}, type, memory::format_tag::any);
  const memory::desc out({kTypicalRows, n_out}, type, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc product(dnnl::matmul::desc(x, w, out),
                                             make_attr(compute, false), engine());
  const memory::desc panels = panels_desc(compute, n_out, n_in);
  return product.weights_desc() == panels &&
         panels.get_size() == packed_bytes(compute, n_out, n_in);
}

/// Packs as rows: [n_out, n_in] in the compute type.
void pack_rows(const CpuContext& ctx, const Tensor& weight, void* dst) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
#pragma omp parallel for num_threads(ctx.n_threads)
  for (int64_t r = 0; r < n_out; ++r) {
    const void* src = weight.at<const void>(r);
    if (ctx.compute == DType::bf16) {
      convert_row(src, weight.dtype, n_in, static_cast<bf16_t*>(dst) + r * n_in);
    } else {
      convert_row(src, weight.dtype, n_in, static_cast<float*>(dst) + r * n_in);
    }
  }
}

/// What a product depends on, apart from addresses.
struct MatmulKey {
  int64_t n, n_in, n_out, x_stride, out_stride;  // strides in elements
  DType compute, out;
  bool panels, bias, accumulate;
  int n_threads;
  auto tie() const {
    return std::tie(n, n_in, n_out, x_stride, out_stride, compute, out, panels, bias, accumulate,
                    n_threads);
  }
  bool operator<(const MatmulKey& other) const { return tie() < other.tie(); }
};

struct Matmul {
  dnnl::matmul product;
  memory::desc x, w, bias, out, scratch;
};

Matmul make_matmul(const MatmulKey& key) {
  Matmul m;
  m.x = {{key.n, key.n_in}, to_dnnl(key.compute), {key.x_stride, 1}};
  m.w = key.panels ? panels_desc(key.compute, key.n_out, key.n_in)
                   : memory::desc({key.n_in, key.n_out}, to_dnnl(key.compute), {1, key.n_in});
  m.out = {{key.n, key.n_out}, to_dnnl(key.out), {key.out_stride, 1}};
  m.bias = {{1, key.n_out}, memory::data_type::f32, memory::format_tag::ab};
  const dnnl::matmul::desc desc =
      key.bias ? dnnl::matmul::desc(m.x, m.w, m.bias, m.out) : dnnl::matmul::desc(m.x, m.w, m.out);
  const dnnl::matmul::primitive_desc product(desc, make_attr(key.compute, key.accumulate),
                                             engine());
  m.scratch = product.scratchpad_desc();
  m.product = dnnl::matmul(product);
  return m;
}

/// Products made before: making one takes 0.1 ms and more. Prompts of a thousand lengths may pass
/// in a server's life, so the cache is emptied when full.
std::shared_ptr<const Matmul> cached_matmul(const MatmulKey& key) {
  constexpr size_t kCapacity = 512;
  static std::mutex mutex;
  static std::map<MatmulKey, std::shared_ptr<const Matmul>> cache;
  const std::lock_guard lock(mutex);
  if (cache.size() >= kCapacity && !cache.contains(key)) cache.clear();
  std::shared_ptr<const Matmul>& matmul = cache[key];
  if (matmul == nullptr) matmul = std::make_shared<const Matmul>(make_matmul(key));
  return matmul;
}

/// The addresses of one product.
struct Operands {
  char* x;
  char* w;
  char* bias;
  char* out;
};

void execute(const Matmul& m, bool bias, const Operands& at, char* scratch_memory) {
  std::unordered_map<int, memory> args{
      {DNNL_ARG_SRC, memory(m.x, engine(), at.x)},
      {DNNL_ARG_WEIGHTS, memory(m.w, engine(), at.w)},
      {DNNL_ARG_DST, memory(m.out, engine(), at.out)},
      {DNNL_ARG_SCRATCHPAD, memory(m.scratch, engine(), scratch_memory)}};
  if (bias) args.emplace(DNNL_ARG_BIAS, memory(m.bias, engine(), at.bias));
  dnnl::stream stream(engine());
  m.product.execute(stream, args);
  stream.wait();
}

/// Products of rows in tiles, each on one thread.
class TiledMatmul {
 public:
  TiledMatmul(const MatmulKey& key, const Operands& at) : key_(key), at_(at) {
    for (const int64_t n : {kTileRows, key.n % kTileRows}) {
      for (const int64_t n_out : {kTileCols, key.n_out % kTileCols}) {
        if (n == 0 || n_out == 0 || n > key.n || n_out > key.n_out) continue;
        MatmulKey tile = key;
        tile.n = n;
        tile.n_out = n_out;
        tile.n_threads = 1;
        std::shared_ptr<const Matmul>& matmul = shapes_[n < kTileRows][n_out < kTileCols];
        matmul = cached_matmul(tile);
        scratch_bytes_ = std::max(scratch_bytes_, (matmul->scratch.get_size() + 63) / 64 * 64);
      }
    }
  }

  void run(int n_threads) const {
    char* memory = scratch(scratch_bytes_ * static_cast<size_t>(n_threads) + 64);
    const int64_t tile_rows = (key_.n + kTileRows - 1) / kTileRows;
    const int64_t tile_cols = (key_.n_out + kTileCols - 1) / kTileCols;
    std::atomic<int> status = dnnl_success;  // nothing may be thrown inside
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1) collapse(2)
    for (int64_t c = 0; c < tile_cols; ++c) {
      for (int64_t r = 0; r < tile_rows; ++r) {
        try {
          run_tile(r * kTileRows, c * kTileCols,
                   memory + scratch_bytes_ * static_cast<size_t>(omp_get_thread_num()));
        } catch (const dnnl::error& e) {
          status = e.status;
        }
      }
    }
    if (status != dnnl_success) {
      throw dnnl::error(static_cast<dnnl_status_t>(status.load()), "a tile's product failed");
    }
  }

 private:
  void run_tile(int64_t row, int64_t col, char* memory) const {
    const bool last_row = row + kTileRows > key_.n, last_col = col + kTileCols > key_.n_out;
    const int64_t element = block_bytes(key_.compute), out_element = block_bytes(key_.out);
    const Operands at{
        .x = at_.x + row * key_.x_stride * element,
        .w = at_.w + col * key_.n_in * element,
        .bias = key_.bias ? at_.bias + col * static_cast<int64_t>(sizeof(float)) : nullptr,
        .out = at_.out + (row * key_.out_stride + col) * out_element};
    execute(*shapes_[last_row][last_col], key_.bias, at, memory);
  }

  const MatmulKey& key_;
  const Operands& at_;
  std::shared_ptr<const Matmul> shapes_[2][2];  // [the last, shorter rows][columns]
  size_t scratch_bytes_ = 0;
};

}  // namespace

bool multiplies_bf16() {
  static const bool result = [] {
    try {
      prefers_panels(DType::bf16, kPanelRows, kPanelRows);
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
    const OmpThreads threads(ctx.n_threads);
    const bool panels = prefers_panels(ctx.compute, n_out, n_in);
    const size_t bytes = panels ? packed_bytes(ctx.compute, n_out, n_in)
                                : static_cast<size_t>(n_out * row_bytes(ctx.compute, n_in));
    if (packed.storage.bytes() < bytes) {
      packed.storage = Buffer();  // free first: the contents need not survive
      packed.storage = Buffer::host(bytes, "packed weights");
    }
    panels ? pack_panels(ctx, weight, packed.storage.data())
           : pack_rows(ctx, weight, packed.storage.data());
    packed.n_out = n_out;
    packed.n_in = n_in;
    auto layout = std::make_unique<CpuPackedLayout>();
    layout->panels = panels;
    packed.layout = std::move(layout);
  });
}

void project_packed(const CpuContext& ctx, const Tensor& x, const PackedWeight& weight,
                    const Tensor& bias, const Tensor& out, bool accumulate) {
  if (x.shape[0] == 0) return;
  const MatmulKey key{.n = x.shape[0],
                      .n_in = weight.n_in,
                      .n_out = weight.n_out,
                      .x_stride = x.stride[0] / block_bytes(x.dtype),
                      .out_stride = out.stride[0] / block_bytes(out.dtype),
                      .compute = ctx.compute,
                      .out = out.dtype,
                      .panels = static_cast<const CpuPackedLayout&>(*weight.layout).panels,
                      .bias = static_cast<bool>(bias),
                      .accumulate = accumulate,
                      .n_threads = ctx.n_threads};
  const Operands at{.x = static_cast<char*>(x.data),
                    .w = static_cast<char*>(weight.storage.data()),
                    .bias = static_cast<char*>(bias.data),
                    .out = static_cast<char*>(out.data)};
  checked("matrix product", [&] {
    const OmpThreads threads(ctx.n_threads);
    if (!key.panels) return TiledMatmul(key, at).run(ctx.n_threads);
    const std::shared_ptr<const Matmul> matmul = cached_matmul(key);
    execute(*matmul, key.bias, at, scratch(matmul->scratch.get_size() + 64));
  });
}

}  // namespace snapkv::cpu
