// SPDX-License-Identifier: MIT
// The engine: loads a GGUF model, reads a prompt of any length while compressing its KV cache layer
// by layer, and generates.
//
//   auto model = snapkv::Model::load({.path = "model.gguf"});
//   snapkv::Session session(model, {.kv = {.budget = 1024}});
//   session.prefill(model->tokenize(text));
//   snapkv::Sampler sampler({.temperature = 0});
//   for (int i = 0; i < 100; ++i) {
//     const int32_t id = sampler.sample(session.logits());
//     if (model->is_end_of_generation(id)) break;
//     std::cout << model->piece(id);  // text_stream.h makes whole characters of these bytes
//     session.decode(id);
//   }
//
// Every function throws snapkv::Error (error.h) on failure; an object whose method threw stays
// valid as documented there. A Model is immutable and threads may share it. Only one thread at a
// time may use a Session; if its model is on_device(), this applies to all sessions of the model
// together. Sizes are in bytes, times in seconds, and positions count tokens from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "snapkv/chat.h"
#include "snapkv/compute.h"
#include "snapkv/dtype.h"
#include "snapkv/error.h"
#include "snapkv/limits.h"
#include "snapkv/log.h"
#include "snapkv/model_info.h"
#include "snapkv/policy.h"
#include "snapkv/sampler.h"
#include "snapkv/tokenizer.h"

namespace snapkv {

class KvPrefix;          // prefill.h
class SavedSessionFile;  // below
struct LentFile;         // lent_file.h

/// "0.1.0"
const char* version();

// ---------------------------------------------------------------- progress

enum class Phase { load, prefill };

struct Progress {
  Phase phase = Phase::load;
  double fraction = 0.0;  ///< of the phase, 0 to 1
  int il = 0;             ///< prefill: the layer being computed, of n_layer
  int n_layer = 0;
  int64_t n_tokens = 0;  ///< prefill: tokens of this prompt
  double seconds = 0.0;  ///< since the phase began
};

/// Called several times a second from the calling thread; return false to stop. The call then
/// throws Error{kCancelled} and leaves the session as it was.
using ProgressFn = std::function<bool(const Progress&)>;

// ---------------------------------------------------------------- memory plan

/// The most bytes that a prompt of n_tokens takes, divided by purpose. On the CPU the resident
/// memory of the process grows by at most total() - weights while the prompt is read and
/// decode_reserve tokens are decoded, and by at least that number less a tenth of it and 2 MiB:
/// docs/reliability.md.
struct MemoryPlan {
  size_t weights = 0;         ///< mapped from the file, and those of ModelOptions::draft_model
  size_t packed_weights = 0;  ///< the largest layer, or what one chunk needs of it
  size_t hidden_states = 0;   ///< [n_tokens, n_embd] f32, during prefill; two chunks if spilled
  size_t activations = 0;     ///< of one chunk, during prefill
  size_t kv_scratch = 0;      ///< one full layer, during prefill
  size_t kv_kept = 0;         ///< all layers after compression, decode reserve included
  size_t queries = 0;         ///< of the last window_size tokens, with kv_decode_limit
  /// Uncompressed rows for later turns (kv_refresh) or for checking guesses (Draft::self); resident
  /// part.
  size_t kv_history = 0;
  size_t draft = 0;           ///< of a model that guesses (Draft::model), without its weights
  size_t logits = 0;          ///< of the last token, including what decode steps need for theirs
  size_t scores = 0;          ///< queries of the window, scores and selected rows of one layer
  size_t kernels = 0;         ///< kernels' working memory on the CPU, and code generated for them
  size_t kv_full = 0;         ///< what a full cache of all layers would take
  int64_t budget = 0;         ///< rows kept per layer and KV head, on average; n_tokens if all are
  size_t kv_peak() const { return kv_scratch + kv_kept; }
  size_t total() const {
    return weights + packed_weights + hidden_states + activations + kv_scratch + kv_kept + queries +
           kv_history + draft + logits + scores + kernels;
  }
};
struct SessionOptions;
/// `n_threads`: as ModelOptions::n_threads. Throws as resolve_options() does.
MemoryPlan plan_memory(const ModelInfo& info, const SessionOptions& options, int64_t n_tokens,
                       DType compute = DType::bf16, const std::string& device = "cpu",
                       int n_threads = 0);
/// Length in tokens of the longest prompt for which a session with these options takes no more than
/// `bytes`, weights not included; 0 if not even one token fits. The context is another limit.
/// Throws as resolve_options() does.
int64_t longest_prompt(const ModelInfo& info, const SessionOptions& options, size_t bytes,
                       DType compute = DType::bf16, const std::string& device = "cpu");
/// Bytes of host memory that this process may still use: what the system reports as available, or
/// what the control group leaves if that is less.
size_t free_memory();
/// Bytes that one token takes in the caches of all layers, while each keeps its rows.
size_t kv_bytes_per_token(const ModelInfo& info, DType kv_type);
/// Bytes of layer il's cache with n_rows rows in each KV head.
size_t kv_layer_bytes(const ModelInfo& info, DType kv_type, int64_t il, int64_t n_rows);

// ---------------------------------------------------------------- model

/// How positions are scaled for contexts beyond the trained one (RoPE).
enum class RopeScaling {
  automatic,  ///< as the model's file says; YaRN if ModelOptions::yarn_factor is given
  none,       ///< not at all: the context is the one that the model was trained with
  yarn,       ///< by YaRN (arXiv 2309.00071)
};

struct ModelOptions {
  std::string path = {};
  std::string device = "auto";  ///< "auto", or a name that devices() lists
  Compute compute = Compute::automatic;
  WeightMemory weights = WeightMemory::automatic;
  int n_threads = 0;         ///< up to kMostThreads; 0: cpu_threads()
  ProgressFn progress = {};  ///< Phase::load
  /// Reads all weights at once and rejects models with an infinity or a NaN among them.
  bool check_tensors = false;
  RopeScaling rope_scaling = RopeScaling::automatic;
  double yarn_factor = 0;     ///< the context is so many times as long; 0: as the file says
  int64_t yarn_orig_ctx = 0;  ///< the context that the model was trained with; 0: the file's
  /// If not empty: the path of a smaller model with the same vocabulary, which guesses for sessions
  /// with Draft::model. It is loaded too, with the same options except those of its context. CPU
  /// only.
  std::string draft_model = {};
};

class Model {
 public:
  /// Throws kRuntime (cannot be read, or the system lacks the huge pages), kDoesNotFit (huge pages,
  /// a copy), kBadModel (names file, field, expected and actual value), kUsage.
  ///
  /// Except with WeightMemory::copy, the weights stay in the mapped files. If a file's size or
  /// modification time has changed by the end of loading or of a prompt, that call throws
  /// kBadModel. If a file becomes shorter, reading the missing part raises SIGBUS; mapped_file.h
  /// tells which file it was.
  static std::shared_ptr<const Model> load(const ModelOptions& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelInfo& info() const;
  /// ModelOptions::draft_model; null: none.
  std::shared_ptr<const Model> draft_model() const;
  /// A hash of the file's header and of samples of every tensor. It distinguishes models, even
  /// those of the same name and size.
  uint64_t fingerprint() const;
  /// "cpu (avx512-bf16, 2 threads, bf16)", "cpu (avx2 of avx512-bf16, 2 threads, f32)"
  std::string backend_description() const;
  /// The most bytes of device memory that were allocated since the model was loaded or
  /// reset_device_peak() was called, weights included; 0 if the model is in host memory.
  size_t device_bytes_peak() const;
  void reset_device_peak() const;
  /// Whether weights and caches are in a device's own memory (DeviceInfo::own_memory). Two threads
  /// must not use sessions of such a model at the same time.
  bool on_device() const;
  /// Bytes of weights that will move from the mapped file into this process's own memory during
  /// decoding, as far as known now (WeightMemory::automatic). Free memory must hold them too.
  size_t weights_to_move() const;
  DType compute_dtype() const;
  /// plan_memory() on the model's own device, with its threads. Throws as resolve_options() does.
  MemoryPlan plan(const SessionOptions& options, int64_t n_tokens) const;
  /// Whether products with few rows round activations to 8 bits; never with Compute::f32.
  bool rounds_activations() const;
  /// Whether long prompts round them too, for weights of ModelInfo::file_type: with
  /// Compute::automatic, on processors whose 8-bit products are faster than those of the compute
  /// type.
  bool rounds_prompts() const;

  /// Valid as long as the model.
  const Tokenizer& tokenizer() const;
  /// The chat templates in the model's file, as read_model_chat() returns them. Throws kBadModel.
  ModelChat chat() const;
  /// Tokenizer::encode(). `add_special`: add BOS/EOS if the model asks for them. `parse_special`:
  /// control tokens written in the text become their ids. The text is never truncated.
  std::vector<int32_t> tokenize(std::string_view text, bool add_special = true,
                                bool parse_special = true) const;
  /// Tokenizer::encode_chat() of a rendered chat.
  std::vector<int32_t> tokenize(const RenderedChat& chat, bool add_bos = true) const;
  /// The bytes that a token adds to the output; they may be part of a UTF-8 character. `special`:
  /// also those of control tokens.
  std::string piece(int32_t id, bool special = false) const;
  std::string detokenize(std::span<const int32_t> ids) const;
  bool is_end_of_generation(int32_t id) const;

 private:
  friend class KvPrefix;
  friend class Session;
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// ---------------------------------------------------------------- session

/// What guesses the next tokens of an answer, which the model then checks several at a time: the
/// answer is the same, sooner if the guesses are right (speculative decoding, arXiv 2211.17192).
enum class Draft {
  off,
  /// The tokens that came after the last ones where these stood before, in the prompt or in the
  /// answer: for quotes, code that is edited, structured data.
  lookup,
  /// What `lookup` guesses and, where it finds nothing, the model itself with the rows that the
  /// policy has kept. All rows are kept beside these, as with kv_refresh, and check the guesses,
  /// so that the answer is that of the full cache (MagicDec, arXiv 2408.11049; TriForce, arXiv
  /// 2404.11912). Needs a policy that has a budget; CPU only.
  self,
  /// What `lookup` guesses and, where it finds nothing, ModelOptions::draft_model, which reads along:
  /// the last draft_ctx tokens of the text (speculative decoding, arXiv 2211.17192).
  model,
};

/// What a prompt's tokens attend to while it is read.
enum class PromptAttention {
  dense,  ///< all tokens before them
  /// In long prompts, for each 128 tokens the blocks of 128 that matter to them, chosen by the
  /// blocks' mean keys (FlashPrefill, arXiv 2603.06199; XAttention, arXiv 2503.16428), the first and
  /// the last ones always. The prompt's last 128 tokens, or the policy's window if that is longer,
  /// attend to all. Faster and not exact. CPU only.
  sparse,
};

struct SessionOptions {
  /// The most tokens, prompt and answer, up to kMostTokens; 0: the model's n_ctx_train.
  int64_t n_ctx = 0;
  PolicyConfig kv = {};  ///< policy that chooses what is kept of a prompt
  /// If > 0: kv.budget becomes the largest one whose kept cache takes no more bytes than this,
  /// counting all layers and heads of this model in kv_type, decode_reserve included
  /// (MemoryPlan::kv_kept). Tokens decoded beyond the reserve take more. Not with kv.ratio; policy
  /// "full" has no budget.
  size_t kv_memory = 0;
  /// If > 0: decoding compresses to the budget again before a layer would have more than this many
  /// rows per head, so that the cache of a long answer stays bounded. A further turn is appended to
  /// the kept rows if all fit within the limit, and compressed with them otherwise. For this the
  /// queries of the last window_size tokens (n_layer * window_size * n_head * head_dim floats) are
  /// kept; the window is then the last tokens, decoded or from the prompt. With kv_refresh the
  /// policy chooses from all rows of the conversation, so that a long answer finds what its own
  /// words ask for and not only what the question did. If layers or heads have
  /// budgets of their own, each may exceed its own by as many rows as the limit exceeds the budget.
  /// Must be greater than kv.budget; not with kv.ratio or with policies that observe all queries
  /// (h2o, expected-attention, kvzip); policy "full" ignores it.
  int64_t kv_decode_limit = 0;
  /// Keeps the uncompressed keys and values of the whole conversation beside the compressed cache,
  /// in kv_type, in memory or in files in spill_dir. Every further turn then reads its tokens over
  /// all rows and selects from all of them with a window of its own, so that a second question is
  /// answered as well as the first. Decoding reads only the kept rows, and kv_decode_limit chooses
  /// from all rows. Without this option a turn sees only the rows that earlier turns kept. Not
  /// with policies that choose once (PolicyInfo::shares_layers). CPU only.
  bool kv_refresh = false;
  /// f32, f16, bf16 or q8_0: type of the cache and, except for q8_0 (then f16), of prefill's
  /// scratch layer. q8_0 needs a head_dim that is a multiple of 32.
  DType kv_type = DType::f16;
  /// Prompt tokens that are computed at a time, up to kMostChunk; bounds activations. 0: 512, in a
  /// mixture of experts up to 2048, so that an expert, whose weights are read for each chunk, gets
  /// about 64 of them.
  int64_t chunk = 0;
  PromptAttention prefill_attention = PromptAttention::dense;
  /// With PromptAttention::sparse: the share of each head's attention, as the mean keys tell it, that
  /// the chosen blocks have together; 0.1 to 1.
  double attention_share = 0.9;
  /// Rows allocated at once for generated tokens, 1 to kMostReserve.
  int64_t decode_reserve = 256;
  /// What a Generator guesses by. Memory for the steps is planned; a step of several tokens is read
  /// by kernels that may add up in another order than those of one token.
  Draft draft = Draft::off;
  /// The most tokens guessed for a step, 1 to kMostStepTokens - 1. Fewer are where that is faster.
  int64_t draft_max = 7;
  /// As many guesses are checked at least, however often they have been wrong; up to draft_max.
  int64_t draft_min = 0;
  /// With Draft::model: the context of the model that guesses. Of longer texts it reads the first 4
  /// tokens and as many of the last ones as fill half of it. 256 to kMostTokens.
  int64_t draft_ctx = 4096;
  /// Bytes that prefill must not exceed, up to kMostBytes; 0: what the system has available.
  size_t memory_limit = 0;
  /// A folder, or empty. While a prompt is read, its hidden states, n_tokens * n_embd floats, are
  /// then in an unnamed file in that folder, of which about two chunks are in memory; the file
  /// disappears when the prompt has been read. The rows that kv_refresh keeps are also in such
  /// files, as long as the session lives. Prefill throws kRuntime if no file can be made there,
  /// kDoesNotFit if the disk has too little space.
  std::string spill_dir = {};
};

/// The options as a session of this model uses them, with kv.budget computed from kv_memory. Throws
/// kUsage naming the field that is invalid; for kv_memory with the smallest value that works.
SessionOptions resolve_options(const SessionOptions& options, const ModelInfo& info);

/// Counts and times since the session began.
struct SessionStats {
  int64_t n_prompt = 0;        ///< tokens prefilled, all turns
  int64_t n_decoded = 0;       ///< tokens decoded, without those that were forgotten again
  double prefill_seconds = 0;  ///< includes score, select and gather
  double decode_seconds = 0;   ///< includes recompress_seconds and guess_seconds
  double guess_seconds = 0;    ///< of guess_tokens()
  int64_t n_recompressed = 0;  ///< decode steps before which kv_decode_limit compressed again
  double recompress_seconds = 0;
  /// The last decode step that this session took part in.
  struct Step {
    int64_t n_tokens = 0;  ///< of all its sessions
    int64_t n_sessions = 0;
    double seconds = 0;
  };
  Step last_step = {};
  // parts of prefill_seconds
  double pack_seconds = 0, linear_seconds = 0, attention_seconds = 0, score_seconds = 0,
         gather_seconds = 0;
  size_t kv_bytes_full = 0;  ///< size of a full cache of the tokens seen so far
  size_t kv_bytes_peak = 0;  ///< the most ever allocated: scratch layer + kept rows
  size_t kv_bytes = 0;       ///< allocated now
  size_t kv_bytes_used = 0;  ///< of rows in use now
  size_t query_bytes = 0;    ///< of the queries kept for kv_decode_limit; not in the other counts
  /// Of the rows that kv_refresh or Draft::self keep beside the cache; not in the other counts.
  size_t history_bytes = 0;
  size_t draft_bytes = 0;  ///< of the cache of a model that guesses; not in the other counts
  /// The most that the last prefill was planned to take, weights not included: MemoryPlan::total()
  /// of all its sessions, with the logits of PrefillOptions::n_logits tokens.
  size_t planned_bytes = 0;
  /// [n_layer]: rows seen, and rows kept per KV head at the end of the last prefill.
  struct Layer {
    int64_t n_total = 0;
    std::vector<int64_t> n_kept;
  };
  std::vector<Layer> layers;
  /// kv_bytes_full / kv_bytes_used
  double compression() const {
    return kv_bytes_used > 0 ? static_cast<double>(kv_bytes_full) / kv_bytes_used : 1.0;
  }
};

/// Reports what groups of a prompt's queries attend to, layer by layer, as prefill computes it: the
/// softmax attention of SnapKV's vote (arXiv 2404.14469, section 4.1), but per query head and for
/// any queries.
///   sums[h, j] = sum_{i in range} softmax_j'(scale * q[i, h] . k[h / n_group, j'])[j]
/// Query i sees the keys up to its own (causal). The softmax is over all of them, in f32, so one
/// head's sums over all j add up to the number of queries in the range.
struct AttentionProbe {
  /// Tokens [begin, end) of the prompt that is read, counted from its first (0). Ranges may overlap
  /// and be in any order.
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
  };
  struct Report {
    int il = 0;
    size_t range = 0;    ///< index in `ranges`
    int64_t n_head = 0;  ///< query heads; head h reads KV head h / (n_head / n_head_kv)
    int64_t n_keys = 0;
    /// [n_head, n_keys], valid during the call. Column j is row j of the head's keys. In a session
    /// that had seen nothing, that is position j, and n_keys = end. After earlier turns the kept
    /// rows come first, in cached_positions()' order, then this prompt's: for a head that had n
    /// rows, token t is in column n + t. If heads had different numbers of rows, n_keys is the
    /// largest, and columns that a head does not have are 0. The range's own columns, [begin, end)
    /// of the prompt, are included: each is summed over the queries that see it.
    std::span<const float> sums;
  };
  std::vector<Range> ranges;
  /// Called from the thread that called prefill, once per layer and range: layers in order, and
  /// within a layer ranges as their last tokens are read. If it throws, the prefill ends and the
  /// session is as it was.
  std::function<void(const Report&)> report;
};

struct PrefillOptions {
  ProgressFn progress = {};  ///< Phase::prefill
  /// Number of last tokens of the prompt whose logits are wanted (1: only the last, which is what
  /// generation needs).
  int64_t n_logits = 1;
  /// If set: called with the logits, [n_vocab], of each of these tokens in order, from the thread
  /// that reads the prompt; `token` counts those that are read from 0. They are computed a few at a
  /// time, and only the last token's are kept. What it throws ends the prefill.
  std::function<void(int64_t token, std::span<const float> logits)> on_logits = {};
  /// false: every row of these tokens is kept, in addition to the rows that are there, as for a
  /// question after a text that is already compressed. true: the policy selects among old and new
  /// rows, and the last of these tokens are its window.
  bool compress = true;
  /// If set: reports attention while the prompt is read. Logits and cache are the same as without
  /// it, except for the rounding of the last layer, which then computes queries that it otherwise
  /// skips. Every score of the ranges is computed again, twice. Its memory (some MB, plus about 12
  /// bytes per query head and key of each range that is being read) does not count towards
  /// memory_limit, nor its time in SessionStats.
  const AttentionProbe* probe = nullptr;
  /// If set: the keys and values of the first `n_from_prefix` tokens are taken from it instead of
  /// being computed, and the policy selects among them as if they had been computed. For sessions
  /// that have seen nothing, without a probe, and not for policies that observe all queries (h2o,
  /// expected-attention, kvzip). At least SessionOptions::kv.window_size tokens must remain to be
  /// read.
  std::shared_ptr<const KvPrefix> prefix = {};
  int64_t n_from_prefix = 0;  ///< 1 to the prefix's length; these tokens must equal the prompt's
};

/// A token that the kept rows, or a smaller model, find the most likely one, and its probability by
/// them.
struct GuessedToken {
  int32_t id = -1;
  float probability = 0.0F;
};
/// Whether the session of that index shall guess another token after `guesses`; `n_guessing`: how
/// many sessions read the last one together.
using MoreGuesses =
    std::function<bool(size_t session, std::span<const GuessedToken> guesses, int64_t n_guessing)>;

/// The tokens that a session appends in one decode step, up to kMostStepTokens.
using StepTokens = std::span<const int32_t>;

/// Every method throws kUsage if the session was moved from. While prefill() or decode() runs, the
/// session accepts no other call that changes it: one from their callbacks throws kUsage.
class Session {
 public:
  /// Throws kUsage if the options are invalid or there is no model.
  Session(std::shared_ptr<const Model> model, const SessionOptions& options);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Reads a prompt, or a further turn, and compresses the cache. On an Error (kContextExceeded,
  /// kDoesNotFit, kCancelled, ...) the session is as it was before the call. NaN or infinite
  /// scores, attention or logits are also an Error (kRuntime); they are never ranked or returned.
  void prefill(std::span<const int32_t> tokens, const PrefillOptions& options = {});

  /// Appends one token, after which its logits are available. Throws kContextExceeded, and kRuntime
  /// if a logit is NaN or infinite; the session is then as it was before the call.
  void decode(int32_t token);

  /// How many tokens the next decode_steps() may append to this session: up to kMostStepTokens,
  /// what the context has room for and, with kv_decode_limit, what a layer has room for before it is
  /// compressed again; 1 in a session that has a limit and no draft. 0: the context is full.
  int64_t decode_room() const;
  /// After a decode_steps() that appended several tokens to this session, and before any other call
  /// that changes it: keeps the first n of them and forgets the others, as if they had not been
  /// read. logits() are then those after the n-th. Models with recurrent layers remember only what
  /// they were before the step, so that they forget all tokens unless they keep all. Returns how
  /// many are kept. Throws kUsage if there are fewer than n.
  int64_t keep_decoded(int64_t n);
  /// [n_vocab] after the i-th of the tokens that keep_decoded() could forget.
  std::span<const float> step_logits(int64_t i) const;

  /// [n_vocab] for the last token; empty before the first prefill.
  std::span<const float> logits() const;
  /// [n_vocab] for the i-th of the last prefill's n_logits tokens.
  std::span<const float> prefill_logits(int64_t i) const;

  /// Tokens seen so far, which is also the true position of the next one.
  int64_t n_past() const;
  /// The context in effect: SessionOptions::n_ctx or the model's.
  int64_t n_ctx() const;
  /// True positions in the cache of layer il and KV head `head`, ascending.
  std::vector<int32_t> cached_positions(int il, int head) const;
  const SessionStats& stats() const;
  /// As resolve_options() returned them.
  const SessionOptions& options() const;
  const Model& model() const;

  /// Notes from now on, until the next prefill(), load() or reset(), which of the tokens read so
  /// far the tokens that decode() appends attend to. Costs copies of a few layers' queries, and
  /// every 16 tokens what SnapKV's votes cost in these layers; on a GPU, steps are no longer
  /// replayed as one graph. Throws kUsage if nothing has been read yet.
  void trace_answer();
  /// [tokens read when trace_answer() was called]: how strongly the answer attends to each, 0 to 1:
  /// the largest softmax attention that any decoded token's query gives its row in any head, mean
  /// of up to 6 layers without a window, from 0.3 to 0.9 of the depth. 0 where no row was kept, and
  /// for the first 4 tokens, attention sinks. Empty without trace_answer() or without such layers.
  std::vector<float> answer_attention();

  /// Forgets everything; keeps the options.
  void reset();

  /// Writes the cache, compressed as it is, with positions and the last token's logits to a file
  /// from which load() continues. `notes`: anything that the program wants back, for example the
  /// text of a conversation. The file appears under its name only when it is complete.
  /// docs/session-file.md describes it. Throws kUsage if nothing has been read yet or with
  /// kv_refresh, whose uncompressed rows are not part of the file; kRuntime if it cannot be
  /// written.
  void save(const std::string& path, std::string_view notes = {}) const;
  /// Replaces the session's state by that of a saved session, and returns its notes. Logits and
  /// later tokens are what they would have been in the session that was saved. Throws kRuntime if
  /// the file cannot be read; kBadModel, naming the field, if it is not such a file, has another
  /// version, or is damaged (checksums cover all of it); kUsage, naming both values, if it
  /// belongs to another model (Model::fingerprint()), policy, parameter, cache type or decode limit
  /// than this session; kContextExceeded if it has more tokens than n_ctx. The session is then as
  /// it was.
  std::string load(const std::string& path);
  /// Same, from a file that was checked when it was opened; kBadModel if it has changed since.
  std::string load(const SavedSessionFile& file);

  struct Impl;  ///< private to the engine

 private:
  friend class DraftReader;
  friend class Prefill;
  friend void decode_steps(std::span<Session* const>, std::span<const StepTokens>);
  friend std::vector<std::vector<GuessedToken>> guess_tokens(std::span<Session* const>,
                                                             std::span<const StepTokens>,
                                                             const MoreGuesses&);
  Impl& state() const;
  static std::vector<Impl*> states(std::span<Session* const> batch, const char* call);
  std::shared_ptr<Impl> impl_;  ///< shared by a Prefill that is in progress
};

/// What the files of Session::save() and KvPrefix::save() (prefill.h) say of themselves.
struct SavedCache {
  uint64_t fingerprint = 0;  ///< Model::fingerprint()
  std::string model;         ///< ModelInfo::name, for people
  std::string notes;
  DType type = DType::f16;  ///< of the rows
  int64_t n_ctx = 0;        ///< of the session that read it; some models' rotation depends on it
  int64_t n_past = 0;       ///< tokens seen
};
/// The header of a file of Session::save().
struct SavedSession : SavedCache {
  /// A session with these options can load the file. Only those that the file is bound to are set:
  /// kv, kv_type, kv_decode_limit.
  SessionOptions options = {};
};
/// A saved session's file, for programs that load it often: it is mapped, and checked once, in all
/// of its bytes. Its model is not needed. Immutable; several threads may load it at once.
class SavedSessionFile {
 public:
  /// Throws kRuntime and kBadModel as Session::load() does.
  explicit SavedSessionFile(const std::string& path);
  /// The same for a file's content in memory, which is not copied.
  explicit SavedSessionFile(const LentFile& file);
  ~SavedSessionFile();
  SavedSessionFile(const SavedSessionFile&) = delete;
  SavedSessionFile& operator=(const SavedSessionFile&) = delete;

  const SavedSession& saved() const;
  size_t bytes() const;  ///< of the file

  struct Impl;  ///< private to the engine
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Returns SavedSessionFile(path).saved().
SavedSession describe_session(const std::string& path);

/// Reads one prompt into several sessions of one model that have seen nothing yet. It is computed
/// once, and compressed for each session by its SessionOptions::kv. kv_type and chunk must be the
/// same. A probe reports once, not per session. On an Error all sessions are as they were.
void prefill_many(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                  const PrefillOptions& options = {});

/// One decode step of several sessions of one model: session i appends tokens[i]. Weights are read
/// once for all; caches may have any length. Throws as Session::decode() does, before any session
/// changes (except for layers that kv_decode_limit had to compress).
void decode_batch(std::span<Session* const> sessions, std::span<const int32_t> tokens);
/// The same with several tokens for each session, 1 to Session::decode_room(): their weights are
/// read once too.
void decode_steps(std::span<Session* const> sessions, std::span<const StepTokens> tokens);

/// For sessions with Draft::self or Draft::model: what may follow if session i appends tokens[i], by
/// the rows that its policy has kept or by ModelOptions::draft_model, for as long as `more` wants
/// and Session::decode_room() allows. Sessions are as before afterwards, except that with
/// Draft::self nothing of the last step can be forgotten any more. The other model first reads what
/// it has not read of the text, 512 tokens in a call, which then brings no guesses. Throws as
/// decode_steps() does.
std::vector<std::vector<GuessedToken>> guess_tokens(std::span<Session* const> sessions,
                                                    std::span<const StepTokens> tokens,
                                                    const MoreGuesses& more);

}  // namespace snapkv
