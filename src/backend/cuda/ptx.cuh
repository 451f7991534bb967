// SPDX-License-Identifier: MIT
// Instructions that CUDA C++ has no function for: tensor-core products, matrix loads, asynchronous
// copies to shared memory (PTX ISA 9.0, sections 9.7.14 and 9.7.9; sm_80 and later) and what orders
// kernels that overlap (9.7.13.13; sm_90 and later, nothing before).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#ifdef SNAPKV_CUDA_ON_HOST
#include <cuda_ptx.h>
#endif

namespace snapkv::cuda::ptx {

#ifdef SNAPKV_CUDA_ON_HOST

using namespace cuda_on_host::ptx;

#else

/// The form of a shared-memory address that the instructions below take.
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// For kernels that start_early() launches (launch.cuh). Lets the next kernel of the stream start,
/// if it is one of these, once all blocks of this one have started.
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
/// Waits until the kernels before this one have ended and what they wrote can be read. Every thread
/// calls it, before it reads or writes memory that other kernels write.
__device__ __forceinline__ void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// d[4] = a[4] b[2] + c[4] by one warp: A is 16 x 16 (rows), B is 16 x 8 (columns), C and D are 16
/// x 8. With g = lane / 4 and t = lane % 4, each lane holds, two values of T per register,
///   a: A[g, 2t..], A[g + 8, 2t..], A[g, 2t + 8..], A[g + 8, 2t + 8..]
///   b: B[2t.., g], B[2t + 8.., g]
///   c, d: C[g, 2t], C[g, 2t + 1], C[g + 8, 2t], C[g + 8, 2t + 1]
template <typename T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4],
                                            const uint32_t (&b)[2], const float (&c)[4]);
template <>
__device__ __forceinline__ void mma_16x8x16<__half>(float (&d)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2], const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
}
template <>
__device__ __forceinline__ void mma_16x8x16<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4],
                                                           const uint32_t (&b)[2],
                                                           const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
}

/// Loads four 8 x 8 matrices of 16-bit values from shared memory. Lanes 8i to 8i + 7 give the rows
/// (16 bytes each, 16-byte aligned) of matrix i; r[i] of a lane receives M_i[lane / 4, 2 (lane %
/// 4)] and the value after it.
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
/// Same for the transposed matrices: M_i[2 (lane % 4), lane / 4] and the value below it.
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// Copies 16 bytes from global to shared memory, both 16-byte aligned. Only the first n_read (0 to
/// 16) are read from global memory; the rest becomes 0.
__device__ __forceinline__ void copy_async_16(void* shared, const void* global, int n_read = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(n_read)
               : "memory");
}
/// Ends a group of the copies above.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
/// Waits until at most n_left groups of this thread are in flight. Other threads' copies are
/// visible after a __syncthreads().
template <int n_left>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n_left) : "memory");
}

/// 2^v within 2 units in the last place; results below 2^-126 are 0.
__device__ __forceinline__ float exp2_approx(float v) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(v));
  return out;
}

#endif

}  // namespace snapkv::cuda::ptx
