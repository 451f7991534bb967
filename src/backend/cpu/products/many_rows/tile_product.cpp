// SPDX-License-Identifier: MIT
#include "backend/cpu/products/many_rows/tile_product.h"

#include <omp.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "backend/cpu/onednn.h"
#include "backend/cpu/products/many_rows/product_tiling.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/weights/pack.h"
#include "base/check.h"
#include "base/log.h"
#include "base/signals_blocked.h"

namespace snapkv::cpu {
namespace {

using dnnl::memory;

const dnnl::engine& engine() {
  static const dnnl::engine e = [] {
    cpu_target();  // the library cannot be restricted after its first use
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return e;
}

memory::data_type to_dnnl(DType t) {
  return t == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc panels_desc(DType compute, int64_t n_out, int64_t n_in) {
  const auto tag = compute == DType::bf16 ? memory::format_tag::BA16a64b2a  //
                                          : memory::format_tag::BA16a64b;
  return {{n_in, n_out}, to_dnnl(compute), tag};
}

dnnl::primitive_attr make_attr(DType compute, bool accumulate) {
  dnnl::primitive_attr attr;
  // Scratch memory comes from the caller: the library's own belongs to the thread that made a
  // product.
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (compute == DType::f32) attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0f);
    attr.set_post_ops(post_ops);
  }
  return attr;
}

auto as_tuple(const TileShape& s) {
  return std::tie(s.n, s.n_in, s.n_out, s.out_stride, s.compute, s.out, s.panels, s.bias,
                  s.accumulate);
}

struct ByShape {
  bool operator()(const TileShape& a, const TileShape& b) const {
    return as_tuple(a) < as_tuple(b);
  }
};

}  // namespace

namespace {

bool ask_for_panels(DType compute, int64_t n_out, int64_t n_in) {
  const auto type = to_dnnl(compute);
  const memory::desc x({kTileRows, n_in}, type, memory::format_tag::ab);
  const memory::desc w({n_in, n_out}, type, memory::format_tag::any);
  const memory::desc out({kTileRows, n_out}, type, memory::format_tag::ab);
  const auto product = onednn_product(engine(), x, w, nullptr, out, make_attr(compute, false));
  const memory::desc panels = panels_desc(compute, n_out, n_in);
  const int64_t panels_bytes = panels.get_size();
  return product.weights_desc() == panels && panels_bytes == packed_bytes(compute, n_out, n_in);
}

}  // namespace

// Cached: asking takes 0.1 ms, a layer has seven matrices, and models have few shapes.
bool prefers_panels(DType compute, int64_t n_out, int64_t n_in) {
  static std::mutex mutex;
  static std::map<std::tuple<DType, int64_t, int64_t>, bool> answers;
  const std::lock_guard lock(mutex);
  const auto shape = std::tuple(compute, n_out, n_in);
  const auto known = answers.find(shape);
  if (known != answers.end()) return known->second;
  return answers[shape] = ask_for_panels(compute, n_out, n_in);
}

// The check ensures that results do not depend on the number of threads: see the header.
TileProduct::TileProduct(const TileShape& s)
    : bias_(s.bias),
      x_({s.n, s.n_in}, to_dnnl(s.compute), memory::format_tag::ab),
      w_(s.panels ? panels_desc(s.compute, s.n_out, s.n_in)
                  : memory::desc({s.n_in, s.n_out}, to_dnnl(s.compute), {1, s.n_in})),
      bias_desc_({1, s.n_out}, memory::data_type::f32, memory::format_tag::ab),
      out_({s.n, s.n_out}, to_dnnl(s.out), {s.out_stride, 1}) {
  SNAPKV_CHECK(omp_get_max_threads() == 1);
  const auto product = onednn_product(engine(), x_, w_, s.bias ? &bias_desc_ : nullptr, out_,
                                      make_attr(s.compute, s.accumulate));
  if (std::string_view(product.impl_info_str()).starts_with("ref")) {
    log_warn("oneDNN has only its slow reference product for {} x {} x {} in {}", s.n, s.n_in,
             s.n_out, name(s.compute));
  }
  scratch_ = product.scratchpad_desc();
  product_ = dnnl::matmul(product);
}

// Making a product takes 0.1 ms or more, so products are cached. A server may see prompts of a
// thousand lengths, so the cache is emptied when it is full.
std::shared_ptr<const TileProduct> TileProduct::get(const TileShape& shape) {
  constexpr size_t kCapacity = 512;
  static std::mutex mutex;
  static std::map<TileShape, std::shared_ptr<const TileProduct>, ByShape> cache;
  const std::lock_guard lock(mutex);
  if (cache.size() >= kCapacity && !cache.contains(shape)) cache.clear();
  std::shared_ptr<const TileProduct>& product = cache[shape];
  if (product == nullptr) product = std::make_shared<const TileProduct>(shape);
  return product;
}

size_t library_bytes(int64_t n_networks) {
  // Of a prompt: the code that it generates for its products, its objects and heap; measured from
  // 0.2 to 0.9 MiB alone with AVX-512, and once 1.54 MiB beside other tests. Of a network: it
  // generates code for every number of tokens that a product has, and networks get different ones.
  // The code for AVX2 is smaller. oneDNN 3.7 took up to 2.7 MiB for a prompt and 0.9 MiB for a
  // network, oneDNN 3.12 up to 8.4 MiB and 3.2 MiB.
  struct Bytes {
    size_t of_prompt, of_network;
  };
  constexpr int kVersion = 100 * DNNL_VERSION_MAJOR + DNNL_VERSION_MINOR;
  constexpr int kAge = kVersion >= 308 ? 2 : kVersion >= 300 ? 1 : 0;
  constexpr Bytes kAvx2[] = {{3 << 18, 32 << 10}, {6 << 18, 32 << 10}, {6 << 18, 32 << 10}};
  constexpr Bytes kAvx512[] = {{7 << 18, 160 << 10}, {13 << 18, 1 << 20}, {35 << 18, 13 << 18}};
  const Bytes bytes = has(CpuTarget::avx2) && !has(CpuTarget::avx512) ? kAvx2[kAge] : kAvx512[kAge];
  // more networks divide the same tokens: with 64 of them, and 1024 tokens at a time, no more was
  // measured
  constexpr int64_t kMostNetworks = kAge > 0 ? 16 : 24;
  return bytes.of_prompt + std::min(n_networks, kMostNetworks) * bytes.of_network;
}

TileRun::TileRun(const TileProduct& product, char* scratch)
    : product_(product),
      x_(product.x_, engine(), nullptr),
      w_(product.w_, engine(), nullptr),
      out_(product.out_, engine(), nullptr),
      arguments_{{DNNL_ARG_SRC, x_},
                 {DNNL_ARG_WEIGHTS, w_},
                 {DNNL_ARG_DST, out_},
                 {DNNL_ARG_SCRATCHPAD, memory(product.scratch_, engine(), scratch)}},
      stream_(engine()) {
  if (product.bias_) {
    bias_ = memory(product.bias_desc_, engine(), nullptr);
    arguments_.emplace(DNNL_ARG_BIAS, bias_);
  }
}

// Making the arguments takes 1 us, a hundredth of a small tile's time, so they are kept.
void TileRun::operator()(const TileOperands& at) {
  x_.set_data_handle(at.x);
  w_.set_data_handle(at.w);
  out_.set_data_handle(at.out);
  if (product_.bias_) bias_.set_data_handle(at.bias);
  const SignalsBlocked blocked;
  product_.product_.execute(stream_, arguments_);
  stream_.wait();
}

}  // namespace snapkv::cpu
