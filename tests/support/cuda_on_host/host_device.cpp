// SPDX-License-Identifier: MIT
#include "tests/support/cuda_on_host/host_device.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "tests/support/cuda_on_host/cuda_runtime.h"

namespace cuda_on_host {

thread_local uint3 thread_index, block_index;
thread_local dim3 block_dim, grid_dim;

namespace {

constexpr size_t kStackBytes = 128 << 10;
constexpr int kWarp = 32;

[[noreturn]] void die(const char* message) {
  std::fprintf(stderr, "cuda_on_host: %s (block %u %u %u, thread %u %u %u)\n", message,
               block_index.x, block_index.y, block_index.z, thread_index.x, thread_index.y,
               thread_index.z);
  std::abort();
}

struct Barrier {
  int n_arrived = 0;
  uint64_t generation = 0;
};

struct Copy {
  void* to;
  const void* from;
  size_t bytes, bytes_read;
};

struct Warp {
  Barrier barrier;
  char slots[2][kWarp][kExchangeBytes];
};

struct Fiber {
  ucontext_t context;  // where it starts
  jmp_buf at;          // where it continues; swapcontext() would make a system call at every switch
  bool begun = false;
  bool waited = false;  // called wait_for_earlier_kernels()
  uint3 index;
  int linear = 0;
  bool done = false;
  uint64_t n_exchanges = 0;
  std::vector<std::vector<Copy>> groups;  // committed groups, oldest first
  std::vector<Copy> open;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Barrier barrier;
  int n_threads = 0, n_done = 0;
  uint64_t n_steps = 0;  // barriers passed and threads ended: shows progress
};

// Only one block runs at a time, so there is one set of everything.
jmp_buf scheduler;
Block block;
Fiber* running = nullptr;
std::vector<char> stacks;
std::vector<char> shared;
const std::function<void()>* body_of_grid = nullptr;
bool reversed_order = false;

void yield() {
  if (_setjmp(running->at) == 0) _longjmp(scheduler, 1);
}

void go_on(Fiber& fiber) {
  running = &fiber;
  thread_index = fiber.index;
  if (_setjmp(scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.at, 1);
  fiber.begun = true;
  setcontext(&fiber.context);
}

void arrive(Barrier& barrier, int n) {
  const uint64_t generation = barrier.generation;
  if (++barrier.n_arrived == n) {
    barrier.n_arrived = 0;
    ++barrier.generation;
    ++block.n_steps;
    return;
  }
  while (barrier.generation == generation) yield();
}

void run_fiber() {
  (*body_of_grid)();
  if (!running->open.empty() || !running->groups.empty())
    die("a thread ends with copies under way");
  running->done = true;
  ++block.n_done;
  ++block.n_steps;
  yield();
}

void run_block() {
  const int n = block.n_threads;
  block.barrier = {};
  block.n_done = 0;
  block.warps.assign(static_cast<size_t>((n + kWarp - 1) / kWarp), Warp{});
  std::fill(shared.begin(), shared.end(), static_cast<char>(0xff));
  for (int i = 0; i < n; ++i) {
    Fiber& fiber = block.fibers[static_cast<size_t>(i)];
    fiber.done = fiber.begun = fiber.waited = false;
    fiber.n_exchanges = 0;
    fiber.groups.clear();
    fiber.open.clear();
    fiber.linear = i;
    const auto u = static_cast<unsigned>(i);
    fiber.index = {u % block_dim.x, u / block_dim.x % block_dim.y, u / block_dim.x / block_dim.y};
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks.data() + static_cast<size_t>(i) * kStackBytes;
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;  // run_fiber() does not return
    makecontext(&fiber.context, run_fiber, 0);
  }
  while (block.n_done < n) {
    const uint64_t steps = block.n_steps;
    for (int i = 0; i < n; ++i) {
      Fiber& fiber = block.fibers[static_cast<size_t>(reversed_order ? n - 1 - i : i)];
      if (!fiber.done) go_on(fiber);
    }
    if (block.n_steps == steps) die("the threads of a block wait for each other for ever");
  }
}

// ---------------------------------------------------------------- memory

constexpr size_t kArenaBytes = size_t{64} << 30;  // size of the address range
constexpr size_t kPage = 4096;

struct Arena {
  char* base = nullptr;
  size_t end = 0;  // end of the part that was ever used
  size_t allocated = 0, limit = SIZE_MAX;
  bool open = false, guarded = true;
  std::map<size_t, size_t> used;                // offset: bytes
  std::multimap<size_t, size_t> free_by_bytes;  // bytes: offset
};
Arena arena;

// Device memory is readable only while a kernel or a copy runs.
class Access {
 public:
  Access() : opened_(arena.guarded && !arena.open) { set(true); }
  ~Access() { set(false); }

 private:
  void set(bool open) {
    if (!opened_ || arena.end == 0) return;
    arena.open = open;
    if (mprotect(arena.base, arena.end, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
      die("mprotect failed");
    }
  }
  bool opened_;
};

}  // namespace

void* dynamic_shared() { return shared.data(); }
int lane() { return running->linear % kWarp; }

void sync_block() {
  if (block.n_done > 0) die("__syncthreads after a thread of the block ended");
  arrive(block.barrier, block.n_threads);
}

void sync_warp(unsigned mask) {
  if ((mask >> lane() & 1) == 0) die("a lane that is not in its mask");
  arrive(block.warps[static_cast<size_t>(running->linear / kWarp)].barrier,
         __builtin_popcount(mask));
}

ExchangeSlots exchange(unsigned mask, const void* value, size_t bytes) {
  if (bytes > kExchangeBytes) die("exchange of too much");
  Warp& warp = block.warps[static_cast<size_t>(running->linear / kWarp)];
  auto slots = warp.slots[running->n_exchanges++ % 2];
  std::memcpy(slots[lane()], value, bytes);
  sync_warp(mask);
  return slots;
}

void copy_async(void* to, const void* from, size_t bytes, size_t bytes_read) {
  std::memset(to, 0xff, bytes);
  running->open.push_back({to, from, bytes, bytes_read});
}

void commit_copies() {
  running->groups.push_back(std::move(running->open));
  running->open.clear();
}

void wait_copies(int groups_left) {
  auto& groups = running->groups;
  while (std::ssize(groups) > groups_left) {
    for (const Copy& c : groups.front()) {
      std::memset(c.to, 0, c.bytes);
      std::memcpy(c.to, c.from, c.bytes_read);
    }
    groups.erase(groups.begin());
  }
}

void wait_for_earlier_kernels() { running->waited = true; }
void check_waited() {
  if (!running->waited) die("a thread of a kernel that starts early did not wait for earlier ones");
}

void run_grid(dim3 grid, dim3 threads, size_t shared_bytes, const std::function<void()>& body) {
  const size_t n = static_cast<size_t>(threads.x) * threads.y * threads.z;
  if (n == 0 || n > 1024) die("a block has 1 to 1024 threads");
  if (static_cast<size_t>(grid.x) * grid.y * grid.z == 0 || grid.y > 65535 || grid.z > 65535) {
    die("a grid of impossible size");
  }
  const Access access;
  grid_dim = grid;
  block_dim = threads;
  block.n_threads = static_cast<int>(n);
  if (block.fibers.size() < n) block.fibers.resize(n);
  if (stacks.size() < n * kStackBytes) stacks.resize(n * kStackBytes);
  shared.assign(shared_bytes + 1, 0);
  body_of_grid = &body;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        block_index = {x, y, z};
        run_block();
      }
    }
  }
}

void guard_memory(bool guarded) {
  if (arena.base != nullptr && arena.end > 0 &&
      mprotect(arena.base, arena.end, guarded ? PROT_NONE : PROT_READ | PROT_WRITE) != 0) {
    die("mprotect failed");
  }
  arena.guarded = guarded;
}
void reverse_threads(bool reversed) { reversed_order = reversed; }
void limit_memory(size_t bytes) { arena.limit = bytes; }
size_t allocated_memory() { return arena.allocated; }

}  // namespace cuda_on_host

// ---------------------------------------------------------------- the runtime's functions

using namespace cuda_on_host;

struct cuda_on_host_graph {
  std::vector<std::function<void()>> nodes;
};

namespace {

constexpr size_t kTotalMemory = size_t{16} << 30;
std::unique_ptr<cuda_on_host_graph> capturing;

cudaError_t submit(std::function<void()> work) {
  if (capturing) {
    capturing->nodes.push_back(std::move(work));
  } else {
    work();
  }
  return cudaSuccess;
}

}  // namespace

void cuda_on_host::submit_work(std::function<void()> work) { submit(std::move(work)); }

cudaError_t cudaGetDeviceCount(int* n) {
  *n = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::snprintf(p->name, sizeof(p->name), "CUDA on the host");
  p->totalGlobalMem = kTotalMemory;
  p->sharedMemPerBlockOptin = 227 << 10;
  p->multiProcessorCount = 4;
  p->major = 9;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = std::min(kTotalMemory, arena.limit);
  *free = *total - std::min(*total, arena.allocated);
  return cudaSuccess;
}

// A pool that keeps no free memory.
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  *pool = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  *static_cast<uint64_t*>(value) = arena.allocated;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t, cudaStream_t) {
  if (capturing) return cudaErrorStreamCaptureUnsupported;
  *p = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (arena.base == nullptr) {
    void* base =
        mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) die("no addresses");
    arena.base = static_cast<char*>(base);
  }
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  if (arena.allocated + rounded > std::min(arena.limit, kTotalMemory)) {
    return cudaErrorMemoryAllocation;
  }
  size_t offset = arena.end;
  const auto found = arena.free_by_bytes.find(rounded);
  if (found != arena.free_by_bytes.end()) {
    offset = found->second;
    arena.free_by_bytes.erase(found);
  } else {
    arena.end += rounded + kPage;  // an unused page after each, to detect overruns
    if (arena.end > kArenaBytes) die("out of addresses");
    if (!arena.guarded && mprotect(arena.base, arena.end, PROT_READ | PROT_WRITE) != 0) {
      die("mprotect failed");
    }
  }
  arena.used[offset] = rounded;
  arena.allocated += rounded;
  *p = arena.base + offset;
  const Access access;
  std::memset(*p, 0xff, rounded);  // NaN of every type
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* p, cudaStream_t) {
  if (p == nullptr) return cudaSuccess;
  const auto found = arena.used.find(static_cast<size_t>(static_cast<char*>(p) - arena.base));
  if (found == arena.used.end()) die("cudaFreeAsync of what was not allocated");
  const Access access;
  std::memset(p, 0xff, found->second);
  arena.allocated -= found->second;
  arena.free_by_bytes.emplace(found->second, found->first);
  arena.used.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  *p = std::malloc(std::max<size_t>(bytes, 1));
  return *p == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  return submit([=] {
    const Access access;
    std::memmove(to, from, bytes);
  });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  return submit([=] {
    const Access access;
    std::memset(to, value, bytes);
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return capturing ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  capturing = std::make_unique<cuda_on_host_graph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = capturing.release();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new cuda_on_host_graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  for (const auto& node : exec->nodes) node();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "unknown error";
  }
}
