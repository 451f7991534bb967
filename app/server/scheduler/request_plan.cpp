// SPDX-License-Identifier: MIT
#include "server/scheduler/request_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "chat/document.h"
#include "server/request_engine.h"
#include "snapkv/policy.h"

namespace snapkv::server {
namespace {

/// Copies of the logits that an answer holds: the session's, the sampler's, and one without the
/// tokens that the request forbids.
constexpr size_t kLogitCopies = 3;
/// Rows of logits that are there at a time while a prompt's tokens are scored.
constexpr size_t kScoredRows = 32;

/// Plans the memory for `n` tokens of the request's own, including the rows of its document.
MemoryPlan memory_of(const Model& model, const Request& request, int64_t n) {
  if (!request.document) return model.plan(request.session, n);
  if (request.document->file.keeps_all) {
    MemoryPlan memory = model.plan(request.session, request.document->file.n_tokens + n);
    const MemoryPlan read = model.plan(request.session, n);
    memory.hidden_states = read.hidden_states;
    memory.activations = read.activations;
    memory.packed_weights = read.packed_weights;
    return memory;
  }
  SessionOptions all = request.session;  // every row of the question is kept
  all.kv = {.name = "full"};
  all.kv_decode_limit = 0;
  if (all.draft == Draft::self) all.draft = Draft::lookup;
  MemoryPlan memory = model.plan(all, n);
  const size_t bytes = request.document->compressed->bytes();
  memory.kv_kept += bytes;
  memory.kv_scratch += bytes / static_cast<size_t>(model.info().n_layer);
  return memory;
}

int64_t context_of(const Model& model, const Request& request) {
  const int64_t n = request.session.n_ctx;
  return n > 0 ? n : std::min<int64_t>(model.info().n_ctx_train, kMostTokens);
}

int64_t document_tokens(const Request& request) {
  return request.document ? request.document->file.n_tokens : 0;
}

/// Whether the policy may keep fewer rows of the prompt than the plan has, and none later.
bool may_keep_fewer(const Request& request) {
  const bool is_chosen = !request.document || request.document->file.keeps_all;
  return keeps_by_attention(request.session.kv) && is_chosen && !request.read &&
         request.session.kv_decode_limit == 0;
}

/// Plans the request as if it had `n_own` tokens of its own.
RequestPlan plan_with(const Model& model, const Request& request, int64_t n_own) {
  const ModelInfo& info = model.info();
  const int64_t n_prompt = document_tokens(request) + n_own;
  const int64_t n_ctx = context_of(model, request);
  if (n_prompt >= n_ctx) {
    // words that clients of OpenAI look for
    Refused refused(Refused::Kind::context_exceeded,
                    fmt::format("This model's maximum context length is {} tokens, the answer "
                                "included. However, your messages resulted in {} tokens. Please "
                                "reduce the length of the messages. Where they are a document and "
                                "a question about it, \"long\": \"auto\" reads what answers it.",
                                n_ctx, n_prompt));
    refused.n_prompt = n_prompt;
    refused.n_ctx = n_ctx;
    throw refused;
  }
  const MemoryPlan memory = memory_of(model, request, n_own);
  RequestPlan plan;
  plan.most_tokens = n_ctx - n_prompt;
  plan.paid_tokens = std::min(plan.most_tokens, kPaidTokens);
  if (request.max_tokens >= 0) {
    plan.most_tokens = std::min(request.max_tokens, plan.most_tokens);
    plan.paid_tokens = plan.most_tokens;
  }
  const auto n = static_cast<size_t>(request.n);
  const int64_t beyond = std::max<int64_t>(0, plan.paid_tokens - request.session.decode_reserve);
  const size_t logits = static_cast<size_t>(info.n_vocab) * sizeof(float);
  const size_t kept =
      memory.kv_kept + memory.kv_history + memory.queries + memory.draft + kLogitCopies * logits;
  plan.running_bytes = n * kept + static_cast<size_t>(beyond) * token_bytes(model, request);
  if (may_keep_fewer(request)) plan.most_kept_bytes = n * memory.kv_kept;
  plan.reading_bytes = memory.packed_weights + memory.hidden_states + memory.activations +
                       memory.logits + memory.scores + memory.kernels;
  // with several answers, only one can have the scratch layer as its cache
  size_t layer = 0;
  for (int64_t il = 0; il < info.n_layer; ++il) {
    layer = std::max(layer, kv_layer_bytes(info, request.session.kv_type, il, n_prompt));
  }
  plan.reading_bytes += n > 1 ? std::max(memory.kv_scratch, layer) : memory.kv_scratch;
  if (request.scores_prompt) plan.reading_bytes += kScoredRows * logits;
  if (request.read) plan.reading_bytes = 0;  // the rows are loaded as they are kept
  plan.prefix_bytes = KvPrefix::bytes_for(info, request.session, n_prompt);
  if (request.keeps_all) plan.reading_bytes += plan.prefix_bytes;
  return plan;
}

}  // namespace

int64_t prompt_tokens(const Request& request) {
  return document_tokens(request) + std::ssize(request.prompt.tokens);
}

size_t token_bytes(const Model& model, const Request& request) {
  const size_t n_copies = request.session.draft == Draft::self ? 2 : 1;  // kept rows and all rows
  return n_copies * static_cast<size_t>(request.n) *
         kv_bytes_per_token(model.info(), request.session.kv_type);
}

RequestPlan plan_request(const Model& model, const Request& request) {
  return plan_with(model, request, std::ssize(request.prompt.tokens));
}

size_t least_memory(const Model& model, const SessionOptions& session) {
  Request request;
  request.session = session;
  request.session.memory_limit = 0;
  request.session.kv_refresh = false;
  request.session.decode_reserve = 1;
  request.max_tokens = 1;
  return plan_with(model, request, 1).needed_bytes();
}

namespace {

/// Whether the request would take no more than `limit` bytes with `n` tokens of its own.
bool fits_with(const Model& model, const Request& request, int64_t n, size_t limit) {
  Request other;
  other.session = request.session;
  other.session.n_ctx = kMostTokens;
  other.n = request.n;
  other.max_tokens = request.max_tokens;
  other.document = request.document;
  return plan_with(model, other, n).needed_bytes() <= limit;
}

/// The most tokens, fewer than `high`, with which the request fits.
int64_t longest_below(const Model& model, const Request& request, int64_t high, size_t limit) {
  int64_t low = 0;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits_with(model, request, middle, limit) ? low : high) = middle;
  }
  return low;
}

}  // namespace

int64_t longest_prompt_within(const Model& model, const Request& request, size_t limit) {
  return longest_below(model, request, std::ssize(request.prompt.tokens), limit);
}

PromptFit fit_prompt(const Model& model, const Request& request, size_t limit) {
  PromptFit fit;
  fit.n_tokens = prompt_tokens(request);
  fit.n_ctx = context_of(model, request);
  const int64_t n_document = document_tokens(request);
  const int64_t most = std::max<int64_t>(0, fit.n_ctx - 1 - n_document);  // of its own tokens
  fit.limited_by_memory = most > 0 && !fits_with(model, request, most, limit);
  fit.most_tokens =
      n_document + (fit.limited_by_memory ? longest_below(model, request, most, limit) : most);
  return fit;
}

}  // namespace snapkv::server
