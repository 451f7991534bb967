// SPDX-License-Identifier: MIT
#include "server/request_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "server/scheduler.h"
#include "snapkv/prefill.h"

namespace snapkv::server {
namespace {

/// Copies of the logits that an answer holds: the session's, the sampler's and one without what the
/// request forbids.
constexpr size_t kLogitCopies = 3;

int64_t context_of(const Model& model, const Request& request) {
  const int64_t n = request.session.n_ctx;
  return n > 0 ? n : std::min<int64_t>(model.info().n_ctx_train, kMostTokens);
}

}  // namespace

size_t token_bytes(const Model& model, const Request& request) {
  return static_cast<size_t>(request.n) * static_cast<size_t>(model.info().n_layer) *
         kv_row_bytes(model.info(), request.session.kv_type);
}

RequestPlan plan_request(const Model& model, const Request& request) {
  const ModelInfo& info = model.info();
  const int64_t n_prompt = std::ssize(request.prompt.tokens);
  const int64_t n_ctx = context_of(model, request);
  if (n_prompt >= n_ctx) {
    throw Refused(Refused::Kind::context_exceeded,
                  fmt::format("the prompt has {} tokens, the context holds {}, the answer included",
                              n_prompt, n_ctx));
  }
  const MemoryPlan memory = plan_memory(info, request.session, n_prompt, model.compute_dtype());
  RequestPlan plan;
  plan.most_tokens = n_ctx - n_prompt;
  plan.paid_tokens = std::min(plan.most_tokens, kPaidTokens);
  if (request.max_tokens >= 0) {
    plan.most_tokens = std::clamp<int64_t>(request.max_tokens, 1, plan.most_tokens);
    plan.paid_tokens = plan.most_tokens;
  }
  const auto n = static_cast<size_t>(request.n);
  const int64_t beyond = std::max<int64_t>(0, plan.paid_tokens - request.session.decode_reserve);
  const size_t logits = static_cast<size_t>(info.n_vocab) * sizeof(float);
  plan.running_bytes = n * (memory.kv_kept + memory.queries + kLogitCopies * logits) +
                       static_cast<size_t>(beyond) * token_bytes(model, request);
  plan.reading_bytes = memory.packed_weights + memory.hidden_states + memory.activations +
                       memory.logits + memory.scores + memory.kernels;
  // several answers can't all have the scratch layer as their cache
  const size_t layer = kv_row_bytes(info, request.session.kv_type) * static_cast<size_t>(n_prompt);
  plan.reading_bytes += n > 1 ? std::max(memory.kv_scratch, layer) : memory.kv_scratch;
  plan.prefix_bytes = KvPrefix::bytes_for(info, request.session, n_prompt);
  return plan;
}

RequestPlan plan_with_document(const Model& model, const Request& request) {
  if (request.snapshot.empty()) {
    RequestPlan plan = plan_request(model, request);
    if (request.keeps_all) plan.reading_bytes += plan.prefix_bytes;
    return plan;
  }
  if (is_prefix_file(request.snapshot)) {  // all its rows: selected from as if they were read now
    Request whole = request;
    const std::vector<int32_t> document = describe_prefix(request.snapshot).tokens;
    whole.prompt.tokens.insert(whole.prompt.tokens.begin(), document.begin(), document.end());
    return plan_request(model, whole);
  }
  Request question = request;
  question.session.kv = {.name = "full"};  // what follows a compressed document stays whole
  question.session.kv_memory = 0;
  question.session.kv_decode_limit = 0;
  RequestPlan plan = plan_request(model, question);
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(request.snapshot, error);
  if (error) {
    throw Error(ErrorCode::kRuntime,
                fmt::format("cannot read '{}': {}", request.snapshot, error.message()));
  }
  plan.running_bytes += static_cast<size_t>(request.n) * size;
  return plan;
}

int64_t longest_prompt_within(const Model& model, const Request& request, size_t limit) {
  const auto fits = [&](int64_t n) {
    Request other;
    other.session = request.session;
    other.session.n_ctx = kMostTokens;
    other.n = request.n;
    other.max_tokens = request.max_tokens;
    other.prompt.tokens.resize(static_cast<size_t>(n));
    const RequestPlan plan = plan_request(model, other);
    return plan.running_bytes + plan.reading_bytes <= limit;
  };
  int64_t low = 0, high = std::ssize(request.prompt.tokens);  // high does not fit
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace snapkv::server
