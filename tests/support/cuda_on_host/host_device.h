// SPDX-License-Identifier: MIT
// A GPU for tests: runs the kernels of src/backend/cuda on the host, so that their logic can be
// checked where there is no device. The .cu files are compiled as C++ with the headers of this
// folder in place of CUDA's.
//
// One block runs at a time; its threads are fibers that switch at barriers, shuffles and matrix
// products. What a real device leaves undefined is made to fail here: device memory can only be
// touched by kernels and copies, new memory and shared memory hold NaN, asynchronous copies to
// shared memory arrive no earlier than they are waited for, threads that wait for different things
// end the program. The order of threads can be reversed, which shows missing barriers.
// It says nothing about speed, nor about races between blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

namespace cuda_on_host {

/// Where the running fiber is.
extern thread_local uint3 thread_index, block_index;
extern thread_local dim3 block_dim, grid_dim;

/// Bytes of the block's dynamic shared memory.
void* dynamic_shared();

/// Waits until all threads of the block are here.
void sync_block();
/// Waits until all lanes of `mask` are here.
void sync_warp(unsigned mask);

/// Every lane of `mask` gives `bytes` bytes and then sees those of all others: `slots[lane]`.
/// Valid until the lane's next exchange but one.
constexpr size_t kExchangeBytes = 64;
using ExchangeSlots = char (*)[kExchangeBytes];
ExchangeSlots exchange(unsigned mask, const void* value, size_t bytes);

/// Of the running thread: 0 to 31.
int lane();

/// cp.async and its groups.
void copy_async(void* shared, const void* global, size_t bytes, size_t bytes_read);
void commit_copies();
void wait_copies(int groups_left);

/// Runs a grid; `body` is one thread.
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& body);

/// From the next grid on, threads of a block run from the last to the first.
void reverse_threads(bool reversed);

/// Whether the host can't touch device memory (at first it can't; each kernel then takes a little
/// longer).
void guard_memory(bool guarded);

/// Device memory: at most this much can be had (for tests of what happens when it is short).
void limit_memory(size_t bytes);
/// Bytes that are allocated.
size_t allocated_memory();

}  // namespace cuda_on_host
