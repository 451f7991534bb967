// SPDX-License-Identifier: MIT
// C API: SnapKV and the other policies for engines with their own model and cache. The same as
// compress.h for C++, which says more about shapes and positions.
//
//   snapkv_policy policy = snapkv_default_policy();
//   policy.budget = 1024;
//   char error[256];
//   snapkv_policy_set(&policy, "kernel_size", "15", error, sizeof(error));
//   snapkv_compressor *c =
//       snapkv_compressor_new(&policy, SNAPKV_CUDA, stream, error, sizeof(error));
//   // for every layer, after the whole prompt:
//   snapkv_layer layer = {...};
//   int64_t capacity = snapkv_max_kept(c, &layer);
//   int32_t *rows = malloc(n_head_kv * capacity * sizeof(int32_t)), *n = malloc(...);
//   if (snapkv_select(c, &layer, capacity, rows, n, error, sizeof(error)) != 0) ...
//   snapkv_gather(c, &layer, &layer.k, capacity, rows, n, &k_kept, error, sizeof(error));
//   snapkv_compressor_free(c);
//
// Functions that can fail return 0 (or an object) on success, and otherwise an error code (or NULL)
// with a message in `error`, cut to error_size bytes, that names what is wrong; `error` may be
// NULL. SNAPKV_ERROR_USAGE is returned for any other NULL argument that is required, for numbers
// out of range (snapkv/limits.h), for vectors that overlap, and for rows to be copied onto rows
// that are read.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Error codes: those of ErrorCode (error.h), which are also the command's exit codes.
enum {
  SNAPKV_OK = 0,
  SNAPKV_ERROR_RUNTIME = 1,
  SNAPKV_ERROR_USAGE = 2,
  SNAPKV_ERROR_BAD_MODEL = 3,
  SNAPKV_ERROR_MEMORY = 4,
  SNAPKV_ERROR_CONTEXT = 5,
  SNAPKV_ERROR_CANCELLED = 130
};
// Which memory the views are in.
enum { SNAPKV_CPU = 0, SNAPKV_CUDA = 1 };
// Types of values.
enum { SNAPKV_F32 = 0, SNAPKV_F16 = 1, SNAPKV_BF16 = 2 };

enum { SNAPKV_PARAMS_SIZE = 256 };

// PolicyConfig of policy.h. Start from snapkv_default_policy(); `name` must be valid while the
// compressor is made. kernel_size, avg_pooling and max_group belong to "snapkv": a policy that
// lacks one of them rejects any value other than the default.
typedef struct {
  const char* name;  // "snapkv", "pyramidkv", ...: docs/policies.md
  int64_t budget;    // rows kept per layer and KV head, the window included
  double ratio;      // if > 0: keep this share of the prompt instead
  int window_size;
  int kernel_size;
  int avg_pooling;  // 0: max
  int max_group;    // 0: mean over the query heads of a KV head
  int sinks;        // first rows always kept; -1: the policy's own
  // All other parameters, as snapkv_policy_set() writes them: "n_future=64 critical=true".
  char params[SNAPKV_PARAMS_SIZE];
} snapkv_policy;
// All fields are zero, which snapkv_compressor_new() rejects, if there is no memory.
snapkv_policy snapkv_default_policy(void);

// Sets a parameter of the policy that policy->name names (set that first): any that
// docs/policies.md lists for it, as text: "15", "0.2", "avg", "true".
int snapkv_policy_set(snapkv_policy* policy, const char* param, const char* value, char* error,
                      size_t error_size);

// The vector of head h and row r starts at element h * head_stride + r * row_stride.
typedef struct {
  void* data;  // read only, except for destinations
  int dtype;
  int64_t head_stride, row_stride;
} snapkv_view;

// One layer of one sequence, after RoPE.
typedef struct {
  int64_t n_tokens;  // rows of k and v: the whole prompt
  int64_t n_window;  // rows of q, the prompt's last tokens
  int64_t n_head, n_head_kv, head_dim;
  snapkv_view q;  // [n_window, n_head, head_dim]
  snapkv_view k;  // [n_head_kv, n_tokens, head_dim]
  snapkv_view v;  // as k; data may be NULL if the policy reads no values ("snapkv")
  float scale;    // 0: 1 / sqrt(head_dim)
  int il, n_layer;
} snapkv_layer;

typedef struct snapkv_compressor snapkv_compressor;

// `stream`: a cudaStream_t for SNAPKV_CUDA, or NULL; ignored for SNAPKV_CPU.
snapkv_compressor* snapkv_compressor_new(const snapkv_policy* policy, int device, void* stream,
                                         char* error, size_t error_size);
void snapkv_compressor_free(snapkv_compressor* compressor);

// The most rows that a head of this layer may keep; 0 for a layer that snapkv_select() rejects.
int64_t snapkv_max_kept(const snapkv_compressor* compressor, const snapkv_layer* layer);

// Selects rows: rows[h * capacity + i], i < n[h], ascending; in host memory. Returns
// SNAPKV_ERROR_USAGE if a head keeps more than `capacity`.
int snapkv_select(snapkv_compressor* compressor, const snapkv_layer* layer, int64_t capacity,
                  int32_t* rows, int32_t* n, char* error, size_t error_size);

// Copies the rows that snapkv_select() selected from `src` (layer->k, layer->v) to `dst`, whose
// rows must be contiguous (row_stride == head_dim). On a device it returns before the copies, which
// follow the order of the stream, are done.
int snapkv_gather(snapkv_compressor* compressor, const snapkv_layer* layer, const snapkv_view* src,
                  int64_t capacity, const int32_t* rows, const int32_t* n, const snapkv_view* dst,
                  char* error, size_t error_size);

#ifdef __cplusplus
}
#endif
