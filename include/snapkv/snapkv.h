// SPDX-License-Identifier: MIT
// C API, in two parts. The first: SnapKV and the other policies for engines with their own model
// and cache, as compress.h has them for C++ (which says more about shapes and positions). The
// second, from "engine" on: models, sessions and answers.
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
// compressor is made.
typedef struct {
  const char* name;  // "snapkv", "pyramidkv", ...: docs/policies.md
  int64_t budget;    // rows kept per layer and KV head, the window included
  double ratio;      // if > 0: keep this share of the prompt instead
  int window_size;
  int sinks;         // first rows always kept; -1: the policy's own
  // The policy's own parameters, as snapkv_policy_set() writes them: "kernel_size=15 pooling=avg".
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

// ---------------------------------------------------------------- engine
//
//   snapkv_options *o = snapkv_options_new();
//   snapkv_options_set(o, "model", "model.gguf", error, sizeof(error));
//   snapkv_options_set(o, "kv_budget", "512", error, sizeof(error));
//   snapkv_model *model = snapkv_model_load(o, NULL, NULL, error, sizeof(error));
//   snapkv_session *session = snapkv_session_new(model, o, error, sizeof(error));
//   snapkv_tokens *prompt = snapkv_chat_tokens(
//       model, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}", error, ...);
//   snapkv_prefill(session, prompt->ids, prompt->n, NULL, NULL, error, sizeof(error));
//   snapkv_generator *answer = snapkv_generator_new(session, o, NULL, 0, error, sizeof(error));
//   snapkv_token token;
//   while (snapkv_generator_step(answer, &token, error, sizeof(error)) == SNAPKV_OK &&
//          token.id >= 0)
//     fwrite(token.text, 1, token.n_text, stdout);
//
// Texts that go in are UTF-8 and end with a zero byte unless their length is given. Texts and
// tokens that come out belong to the caller (snapkv_text_free, snapkv_tokens_free), but where a
// function says how long they stay. A model may be used by several threads at once, everything else
// by one at a time; objects keep what they were made of alive, so that they may be freed in any
// order.

// A text of n bytes, with a zero byte behind it.
typedef struct {
  char* data;
  size_t n;
} snapkv_text;
typedef struct {
  int32_t* ids;
  size_t n;
} snapkv_tokens;
void snapkv_text_free(snapkv_text* text);
void snapkv_tokens_free(snapkv_tokens* tokens);

// "0.1.0"; static.
const char* snapkv_version(void);
// The code of the last function that failed in this thread, for those that return NULL.
int snapkv_error_code(void);

// --- options, by name and as text (snapkv/options.h)
typedef struct snapkv_options snapkv_options;
// NULL where there is no memory.
snapkv_options* snapkv_options_new(void);
void snapkv_options_free(snapkv_options* options);
int snapkv_options_set(snapkv_options* options, const char* name, const char* value, char* error,
                       size_t error_size);
// The value in force, as snapkv_options_set() takes it.
snapkv_text* snapkv_options_get(const snapkv_options* options, const char* name, char* error,
                                size_t error_size);
// A JSON array of all options: name, group, type, default, range, words, help. `policy`: whose
// parameters are listed too; NULL: those of the default policy.
snapkv_text* snapkv_options_list(const char* policy, char* error, size_t error_size);

// --- models
typedef struct snapkv_model snapkv_model;
// Called several times a second by the thread that made the call; phase: "load" or "prefill",
// fraction from 0 to 1. Another result than 0 ends the call with SNAPKV_ERROR_CANCELLED.
typedef int (*snapkv_progress_fn)(void* user, const char* phase, double fraction);

snapkv_model* snapkv_model_load(const snapkv_options* options, snapkv_progress_fn progress,
                                void* user, char* error, size_t error_size);
void snapkv_model_free(snapkv_model* model);
// A JSON object: path, architecture, name, file_type, tokenizer, n_layer, n_embd, n_ff, n_vocab,
// n_ctx_train, n_head, n_head_kv, head_dim, n_params, weight_bytes, backend, chat_templates.
snapkv_text* snapkv_model_info(const snapkv_model* model, char* error, size_t error_size);

snapkv_tokens* snapkv_tokenize(const snapkv_model* model, const char* text, size_t n_text,
                               int add_special, int parse_special, char* error, size_t error_size);
// The bytes of the tokens, which may begin or end inside a character.
snapkv_text* snapkv_detokenize(const snapkv_model* model, const int32_t* ids, size_t n, char* error,
                               size_t error_size);
// Renders a conversation with the model's template. `variables`: a JSON object with messages and
// whatever else the template knows; add_generation_prompt is true and bos_token and eos_token are
// the model's unless they are there.
snapkv_text* snapkv_chat_text(const snapkv_model* model, const char* variables, char* error,
                              size_t error_size);
// The tokens of the same. Control tokens spelled out in messages stay text.
snapkv_tokens* snapkv_chat_tokens(const snapkv_model* model, const char* variables, char* error,
                                  size_t error_size);
// 1 for a token that ends an answer, else 0.
int snapkv_is_end_of_generation(const snapkv_model* model, int32_t id);

// --- every row of a document, from which each question selects its own (snapkv/prefill.h)
typedef struct snapkv_prefix snapkv_prefix;
snapkv_prefix* snapkv_prefix_read(const snapkv_model* model, const snapkv_options* options,
                                  const int32_t* ids, size_t n, snapkv_progress_fn progress,
                                  void* user, char* error, size_t error_size);
snapkv_prefix* snapkv_prefix_load(const snapkv_model* model, const char* path, char* error,
                                  size_t error_size);
int snapkv_prefix_save(const snapkv_prefix* prefix, const char* path, char* error,
                       size_t error_size);
size_t snapkv_prefix_tokens(const snapkv_prefix* prefix);
void snapkv_prefix_free(snapkv_prefix* prefix);

// --- sessions
typedef struct snapkv_session snapkv_session;
snapkv_session* snapkv_session_new(const snapkv_model* model, const snapkv_options* options,
                                   char* error, size_t error_size);
void snapkv_session_free(snapkv_session* session);
// Reads a prompt or a further turn and compresses the cache. After an error the session is as it
// was.
int snapkv_prefill(snapkv_session* session, const int32_t* ids, size_t n,
                   snapkv_progress_fn progress, void* user, char* error, size_t error_size);
// Reads the tokens after those of a document, in a session that has seen nothing.
int snapkv_prefill_after(snapkv_session* session, const snapkv_prefix* prefix, const int32_t* ids,
                         size_t n, snapkv_progress_fn progress, void* user, char* error,
                         size_t error_size);
// One token each for n sessions of one model.
int snapkv_decode(snapkv_session* const* sessions, const int32_t* ids, size_t n, char* error,
                  size_t error_size);
// The logits after the last token, until the session is used again; *n is the vocabulary's size,
// and 0 before the first prompt.
const float* snapkv_logits(const snapkv_session* session, size_t* n);
int64_t snapkv_n_past(const snapkv_session* session);
int64_t snapkv_n_ctx(const snapkv_session* session);
// True positions in the cache of layer il, KV head `head`, as tokens.
snapkv_tokens* snapkv_positions(const snapkv_session* session, int il, int head, char* error,
                                size_t error_size);
// A JSON object: n_prompt, n_decoded, prefill_seconds, decode_seconds, kv_bytes_used,
// kv_bytes_full, kv_bytes_peak, compression, layers (n_total, n_kept of each KV head).
snapkv_text* snapkv_stats(const snapkv_session* session, char* error, size_t error_size);
int snapkv_session_reset(snapkv_session* session, char* error, size_t error_size);
int snapkv_session_save(const snapkv_session* session, const char* path, char* error,
                        size_t error_size);
int snapkv_session_load(snapkv_session* session, const char* path, char* error, size_t error_size);

// --- answers
typedef struct snapkv_generator snapkv_generator;
// A token of an answer. `id` is -1 where the answer has ended without one. `text` is what became
// certain with the token, n_text bytes; with the last token all that was held back. It stays until
// the generator is used again.
typedef struct {
  int32_t id;
  const char* text;
  size_t n_text;
  double logprob;  // with top_logprobs >= 0: natural logarithm; else 0
  int is_last;     // whether the answer has ended
} snapkv_token;

// `grammar`: GBNF, or a JSON schema where the text begins with '{', or NULL. `history`: tokens that
// penalties count as written already, or NULL. The session must have read a prompt.
snapkv_generator* snapkv_generator_new(snapkv_session* session, const snapkv_options* options,
                                       const char* grammar, const int32_t* history,
                                       size_t n_history, char* error, size_t error_size);
void snapkv_generator_free(snapkv_generator* generator);
int snapkv_generator_step(snapkv_generator* generator, snapkv_token* token, char* error,
                          size_t error_size);
// "eos", "stop", "paragraph", "length" or "context"; NULL while the answer has not ended. Static.
const char* snapkv_generator_stop_reason(const snapkv_generator* generator);

#ifdef __cplusplus
}
#endif
