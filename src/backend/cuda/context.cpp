// SPDX-License-Identifier: MIT
#include "backend/cuda/context.h"

#include <algorithm>

#include "backend/cuda/gemm.h"
#include "backend/cuda/weight_store.h"
#include "base/check.h"
#include "base/error.h"

namespace snapkv::cuda {
namespace {

constexpr size_t kRingBytes = size_t{4} << 20;

size_t aligned(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void free_host(void* p, size_t, void*) { cudaFreeHost(p); }

}  // namespace

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  fail(ErrorCode::kRuntime, "CUDA: {}: {} ({})", call, cudaGetErrorString(status),
       static_cast<int>(status));
}

Context::Context(DType compute, cudaStream_t stream) : compute_(compute), stream_(stream) {
  int n_devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&n_devices);
  if (found != cudaSuccess || n_devices == 0) {
    fail(ErrorCode::kRuntime, "no CUDA device: {} ({}); is the NVIDIA driver installed?",
         cudaGetErrorString(found), static_cast<int>(found));
  }
  int device = 0;
  if (stream == nullptr) {
    check(cudaSetDevice(0), "cudaSetDevice");
  } else {
    check(cudaGetDevice(&device), "cudaGetDevice");
  }
  check(cudaGetDeviceProperties(&properties_, device), "cudaGetDeviceProperties");
  if (properties_.major < 8) {
    fail(ErrorCode::kRuntime,
         "CUDA device {} has compute capability {}.{}, 8.0 or later is needed (bf16 products)",
         properties_.name, properties_.major, properties_.minor);
  }
  if (stream == nullptr) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    owns_stream_ = true;
  }
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  uint64_t keep_all = UINT64_MAX;
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all),
        "cudaMemPoolSetAttribute");
  ring_device_ = allocate(kRingBytes, "kernel arguments");
  ring_host_ = allocate_pinned(kRingBytes, "kernel arguments");
  weights_ = std::make_unique<WeightStore>(*this);
  gemm_ = std::make_unique<Gemm>(*this);
}

Context::~Context() {
  gemm_.reset();
  weights_.reset();
  ring_host_ = Buffer();
  ring_device_ = Buffer();
  scratch_ = Buffer();
  if (stream_ == nullptr) return;
  cudaStreamSynchronize(stream_);
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
  if (owns_stream_) cudaStreamDestroy(stream_);
}

void Context::release(void* data, size_t bytes, void* context) {
  auto* self = static_cast<Context*>(context);
  cudaFreeAsync(data, self->stream_);
  self->memory_ -= bytes;
}

size_t Context::free_memory() const {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  uint64_t reserved = 0, used = 0;
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved),
        "cudaMemPoolGetAttribute");
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used),
        "cudaMemPoolGetAttribute");
  return free + (reserved - used);
}

Buffer Context::allocate(size_t bytes, const char* what) {
  const size_t n = std::max<size_t>(bytes, 1);
  void* p = nullptr;
  cudaError_t status = cudaMallocFromPoolAsync(&p, n, pool_, stream_);
  if (status == cudaErrorMemoryAllocation) {  // freeing the pool's other pieces may be enough
    cudaGetLastError();                       // not sticky: later calls must not see it
    synchronize();
    check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
    status = cudaMallocFromPoolAsync(&p, n, pool_, stream_);
  }
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail(ErrorCode::kDoesNotFit, "{}: no {:.1f} MiB on {}: {:.1f} of {:.1f} MiB are free", what,
         static_cast<double>(bytes) / (1 << 20), properties_.name,
         static_cast<double>(free_memory()) / (1 << 20),
         static_cast<double>(properties_.totalGlobalMem) / (1 << 20));
  }
  check(status, "cudaMallocFromPoolAsync");
  memory_ += bytes;
  peak_memory_ = std::max(peak_memory_, memory_);
  return Buffer(p, bytes, release, this);
}

Buffer Context::allocate_pinned(size_t bytes, const char* what) {
  void* p = nullptr;
  const cudaError_t status = cudaHostAlloc(&p, std::max<size_t>(bytes, 1), cudaHostAllocDefault);
  if (status != cudaSuccess) {
    cudaGetLastError();
    fail(ErrorCode::kDoesNotFit, "{}: no {:.1f} MiB of page-locked memory: {}", what,
         static_cast<double>(bytes) / (1 << 20), cudaGetErrorString(status));
  }
  return Buffer(p, bytes, free_host);
}

void Context::synchronize() { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

void* Context::scratch(size_t bytes) {
  if (scratch_.bytes() < bytes) {
    SNAPKV_CHECK(step_host_ == nullptr);  // a step's first run has made it large enough
    synchronize();
    ++memory_generation_;
    scratch_ = Buffer();  // frees the old one first
    scratch_ = allocate(aligned(bytes, size_t{1} << 20), "scratch memory of a kernel");
  }
  return scratch_.data();
}

const void* Context::put_bytes(const void* values, size_t bytes) {
  const size_t n = aligned(std::max<size_t>(bytes, 1), 16);
  bytes_put_ += n;
  if (step_host_ != nullptr) {
    SNAPKV_CHECK(step_at_ + n <= step_bytes_);
    std::memcpy(step_host_ + step_at_, values, bytes);
    const void* at = step_device_ + step_at_;
    step_at_ += n;
    return at;
  }
  SNAPKV_CHECK(n <= kRingBytes);
  if (ring_at_ + n > kRingBytes) {  // older arguments may still be in transfer
    synchronize();
    ring_at_ = 0;
  }
  char* host = static_cast<char*>(ring_host_.data()) + ring_at_;
  char* device = static_cast<char*>(ring_device_.data()) + ring_at_;
  ring_at_ += n;
  std::memcpy(host, values, bytes);
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  return device;
}

void Context::begin_arguments(const Buffer& device, const Buffer& host) {
  SNAPKV_CHECK(step_host_ == nullptr && device.bytes() == host.bytes());
  step_host_ = static_cast<char*>(host.data());
  step_device_ = static_cast<char*>(device.data());
  step_bytes_ = host.bytes();
  step_at_ = 0;
}

size_t Context::end_arguments() {
  step_host_ = step_device_ = nullptr;
  return step_at_;
}

}  // namespace snapkv::cuda
