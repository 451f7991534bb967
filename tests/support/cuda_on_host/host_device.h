// SPDX-License-Identifier: MIT
// A GPU for tests: runs the kernels of src/backend/cuda on the host, so that their logic can be
// checked without a device. The .cu files are compiled as C++ with the headers of this folder
// instead of CUDA's.
//
// One block runs at a time; its threads are fibers that switch at barriers, shuffles and matrix
// products. Behaviour that is undefined on a real device fails here: device memory can only be
// accessed by kernels and copies, new memory and shared memory hold NaN, asynchronous copies to
// shared memory arrive no earlier than they are waited for, and threads that wait for different
// things end the program. The order of threads can be reversed, which reveals missing barriers. It
// tells nothing about speed, nor about races between blocks.
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

/// Indices of the running fiber.
extern thread_local uint3 thread_index, block_index;
extern thread_local dim3 block_dim, grid_dim;

/// The block's dynamic shared memory.
void* dynamic_shared();

/// Waits until all threads of the block have arrived.
void sync_block();
/// Waits until all lanes of `mask` have arrived.
void sync_warp(unsigned mask);

/// Each lane of `mask` contributes `bytes` bytes and receives those of all others: `slots[lane]`.
/// They stay valid until the lane's next exchange but one.
constexpr size_t kExchangeBytes = 64;
using ExchangeSlots = char (*)[kExchangeBytes];
ExchangeSlots exchange(unsigned mask, const void* value, size_t bytes);

/// Lane of the running thread: 0 to 31.
int lane();

/// cp.async and its groups.
void copy_async(void* shared, const void* global, size_t bytes, size_t bytes_read);
void commit_copies();
void wait_copies(int groups_left);

/// griddepcontrol.wait. A thread of a kernel that may start early must have called it when it ends:
/// check_waited().
void wait_for_earlier_kernels();
void check_waited();

/// Runs a grid; `body` is the work of one thread.
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& body);

/// From the next grid on, runs the threads of a block from last to first.
void reverse_threads(bool reversed);

/// Whether the host is kept from accessing device memory. True at first; every kernel then takes a
/// little longer.
void guard_memory(bool guarded);

/// Limits the size of device memory, to test what happens when it runs out.
void limit_memory(size_t bytes);
/// Bytes that are currently allocated.
size_t allocated_memory();

}  // namespace cuda_on_host
