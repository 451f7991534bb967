// SPDX-License-Identifier: MIT
// The products multiply unsigned activations by signed weights and sum in 32 bits, as the
// instructions of x86-64 and Arm do. The library obeys the CPU target, which is settled before its
// first use here.
#include "bench/int8_peak.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "backend/cpu/onednn.h"
#include "base/check.h"
#include "base/error.h"
#include "base/signals_blocked.h"
#include "base/timer.h"
#include "snapkv/compute.h"

namespace snapkv {
namespace {

using dnnl::memory;

// The weights take 256 KiB and the activations 64 KiB: both stay in an L2 cache.
constexpr int64_t kRows = 128, kDepth = 512, kColumns = 512;
constexpr int kTimes = 16;  // products timed together
constexpr int kActivation = 3, kWeight = -2;

/// The product that one thread computes.
class Int8Product {
 public:
  Int8Product()
      : engine_(dnnl::engine::kind::cpu, 0),
        product_(cpu::onednn_product(
            engine_, {{kRows, kDepth}, memory::data_type::u8, memory::format_tag::ab},
            {{kDepth, kColumns}, memory::data_type::s8, memory::format_tag::any}, nullptr,
            {{kRows, kColumns}, memory::data_type::s32, memory::format_tag::ab})),
        x_(product_.src_desc(), engine_),
        w_(product_.weights_desc(), engine_),
        out_(product_.dst_desc(), engine_),
        stream_(engine_),
        run_(product_) {
    // All values are equal, so the layout that the library chose does not matter.
    std::memset(x_.get_data_handle(), kActivation, x_.get_desc().get_size());
    std::memset(w_.get_data_handle(), kWeight, w_.get_desc().get_size());
  }

  void operator()() {
    const SignalsBlocked blocked;
    run_.execute(stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, out_}});
    stream_.wait();
  }

  bool is_right() const {
    const auto* sums = static_cast<const int32_t*>(out_.get_data_handle());
    return std::all_of(sums, sums + kRows * kColumns,
                       [](int32_t sum) { return sum == kDepth * kActivation * kWeight; });
  }

 private:
  dnnl::engine engine_;
  dnnl::matmul::primitive_desc product_;
  memory x_, w_, out_;
  dnnl::stream stream_;
  dnnl::matmul run_;
};

/// Limits the library to one thread while this lives: it takes its number of threads from the
/// caller's OpenMP setting.
class OneLibraryThread {
 public:
  OneLibraryThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneLibraryThread() { omp_set_num_threads(before_); }
  OneLibraryThread(const OneLibraryThread&) = delete;
  OneLibraryThread& operator=(const OneLibraryThread&) = delete;

 private:
  const int before_;
};

/// Runs every thread's product `times` times and returns the seconds that this took.
double run(std::vector<Int8Product>& products, int times) {
  const auto n_threads = static_cast<int>(products.size());
  std::atomic<bool> failed = false;  // exceptions must not leave the parallel region
  const Timer timer;
#pragma omp parallel for schedule(static, 1) num_threads(n_threads)
  for (int t = 0; t < n_threads; ++t) {
    try {
      for (int i = 0; i < times; ++i) products[static_cast<size_t>(t)]();
    } catch (const dnnl::error&) {
      failed = true;
    }
  }
  const double seconds = timer.seconds();
  if (failed) fail(ErrorCode::kRuntime, "oneDNN could not compute a product of 8-bit integers");
  return seconds;
}

}  // namespace

double measure_int8_products(int n_threads, int repetitions) {
  SNAPKV_CHECK(n_threads > 0 && repetitions > 0);
  cpu_compute_dtype();  // settles the CPU target, which cannot be changed after the library's first
                        // use
  const OneLibraryThread one;
  try {
    std::vector<Int8Product> products(static_cast<size_t>(n_threads));
    run(products, 1);
    for (const Int8Product& product : products) {
      if (!product.is_right()) {
        fail(ErrorCode::kRuntime, "a product of 8-bit integers of oneDNN is wrong: not timed");
      }
    }
    const double operations =
        2.0 * kRows * kDepth * kColumns * kTimes * static_cast<double>(n_threads);
    double best = 0;
    for (int r = 0; r < repetitions; ++r) best = std::max(best, operations / run(products, kTimes));
    return best;
  } catch (const dnnl::error& e) {
    fail(ErrorCode::kRuntime, "oneDNN has no product of 8-bit integers here: {}", e.what());
  }
}

}  // namespace snapkv
