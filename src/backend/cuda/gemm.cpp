// SPDX-License-Identifier: MIT
#include "backend/cuda/gemm.h"

#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace snapkv::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // cuBLAS's recommendation for Hopper

void check_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorCode::kRuntime, "cuBLASLt: {}: {} ({})", call, cublasLtGetStatusString(status),
       static_cast<int>(status));
}

cudaDataType_t data_type(DType dtype) { return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// The alignment of an address, up to 256 bytes, which the library assumes unless told otherwise.
uint32_t alignment_of(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p) | 256;
  return static_cast<uint32_t>(address & ~(address - 1));
}

// Descriptors of one shape, and the algorithm that the library ranks first.
struct Product {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  Product() = default;
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    if (out != nullptr) cublasLtMatrixLayoutDestroy(out);
    if (x != nullptr) cublasLtMatrixLayoutDestroy(x);
    if (w != nullptr) cublasLtMatrixLayoutDestroy(w);
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
  }
};

}  // namespace

struct Gemm::Impl {
  // n, n_out, n_in, type of out, alignment of all
  using Key = std::tuple<int64_t, int64_t, int64_t, DType, uint32_t>;

  explicit Impl(Context& c) : context(c) {
    check_blas(cublasLtCreate(&handle), "cublasLtCreate");
    workspace = context.allocate(kWorkspaceBytes, "workspace of cuBLASLt");
  }
  ~Impl() { cublasLtDestroy(handle); }

  // cuBLAS is column-major: it sees a row-major [n, n_in] as n_in x n. So it computes out^T = w
  // x^T, with w transposed relative to what it sees.
  void prepare(const Key& key, Product& p) {
    const auto [n, n_out, n_in, out_type, alignment] = key;
    check_blas(cublasLtMatmulDescCreate(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check_blas(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                              sizeof(transposed)),
               "cublasLtMatmulDescSetAttribute");
    const auto layout = [](cublasLtMatrixLayout_t& l, DType type, int64_t rows, int64_t columns) {
      check_blas(cublasLtMatrixLayoutCreate(&l, data_type(type), static_cast<uint64_t>(rows),
                                            static_cast<uint64_t>(columns), rows),
                 "cublasLtMatrixLayoutCreate");
    };
    layout(p.w, context.compute(), n_in, n_out);
    layout(p.x, context.compute(), n_in, n);
    layout(p.out, out_type, n_out, n);

    cublasLtMatmulPreference_t preference = nullptr;
    check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const size_t bytes = kWorkspaceBytes;
    cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    // Parts of a sum may be added in f32 only: by default also in the output's type, bf16.
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = cublasLtMatmulPreferenceSetAttribute(
          preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof(reduction));
    }
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      if (status != CUBLAS_STATUS_SUCCESS) break;
      status =
          cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment, sizeof(alignment));
    }
    cublasLtMatmulHeuristicResult_t found{};
    int n_found = 0;
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = cublasLtMatmulAlgoGetHeuristic(handle, p.operation, p.w, p.x, p.out, p.out,
                                              preference, 1, &found, &n_found);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
    if (n_found == 0) {
      fail(ErrorCode::kRuntime, "cuBLASLt has no algorithm for [{}, {}] x [{}, {}] in {}", n, n_in,
           n_in, n_out, name(context.compute()));
    }
    p.algorithm = found.algo;
  }

  Context& context;
  cublasLtHandle_t handle = nullptr;
  Buffer workspace;
  std::map<Key, Product> products;
};

Gemm::Gemm(Context& context) : impl_(std::make_unique<Impl>(context)) {}
Gemm::~Gemm() = default;

void Gemm::run(const Tensor& x, const Tensor& w, const Tensor& out, bool accumulate) {
  const Impl::Key key = {
      x.shape[0], w.shape[0], w.shape[1], out.dtype,
      std::min({alignment_of(x.data), alignment_of(w.data), alignment_of(out.data)})};
  const auto [at, is_new] = impl_->products.try_emplace(key);
  Product& p = at->second;
  if (is_new) {
    try {
      impl_->prepare(key, p);
    } catch (...) {
      impl_->products.erase(at);
      throw;
    }
  }
  const float alpha = 1.0f, beta = accumulate ? 1.0f : 0.0f;
  check_blas(cublasLtMatmul(impl_->handle, p.operation, &alpha, w.data, p.w, x.data, p.x, &beta,
                            out.data, p.out, out.data, p.out, &p.algorithm, impl_->workspace.data(),
                            kWorkspaceBytes, impl_->context.stream()),
             "cublasLtMatmul");
}

}  // namespace snapkv::cuda
