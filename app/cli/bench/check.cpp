// SPDX-License-Identifier: MIT
#include "cli/bench/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/bench/tokens.h"

namespace snapkv::cli {
namespace {

constexpr int64_t kReferenceMaxParams = 200'000'000;  // about a second per token on the reference
constexpr int64_t kLongReferenceMaxParams = 30'000'000;
constexpr int64_t kMinTokens = 33;     // of the prompt; more where packed weights need more
constexpr int64_t kShortTokens = 8;    // prompt tokens that the reference reads for larger models
constexpr int64_t kDecodedTokens = 4;  // at its end; the rest is too short for packed weights
// f32: only the cache's rounding to 16 bits and the order of sums differ, by less than this in
// every token. bf16 and 8 bits: activations are rounded. On trained models, half of the tokens then
// differ by less than 0.2, one whose activations have outliers by 0.6 (the first of Gemma 3); other
// weights change every token, by 0.35 where all tokens are nearly as likely, otherwise by several
// units.
constexpr double kToleranceF32 = 0.05;
constexpr double kToleranceRounded = 0.3;

// Returns the difference in log-probability of a token that the reference, `b`, would draw: the
// root of the mean of its square. Unlikely tokens are never sampled, and rounding affects them
// most.
double difference(std::span<const float> a, std::span<const float> b) {
  const auto log_sum = [](std::span<const float> logits) {
    const double max = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) sum += std::exp(x - max);
    return max + std::log(sum);
  };
  for (const std::span<const float> logits : {a, b}) {
    if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
      return INFINITY;
    }
  }
  const double sum_a = log_sum(a), sum_b = log_sum(b);
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double apart = (a[i] - sum_a) - (b[i] - sum_b);
    squares += std::exp(b[i] - sum_b) * apart * apart;
  }
  return std::sqrt(squares);
}

SessionOptions check_options(DType kv_type) {
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = kv_type;
  options.n_ctx = 4096;
  return options;
}

// Returns one token more than the shortest prompt that is computed with packed weights, provided
// that a prompt of the session's length is.
int64_t check_length(const Model& model, DType kv_type) {
  const auto packs = [&](int64_t n) {
    return model.plan(check_options(kv_type), n).packed_weights > 0;
  };
  int64_t n = kMinTokens;
  if (!packs(check_options(kv_type).n_ctx)) return n;
  while (!packs(n - 1)) ++n;
  return n;
}

// The largest of the tokens' differences; where activations are rounded, the median: single tokens
// have outliers among their activations, or go to another expert that is nearly as good, while
// wrong kernels change every token.
double summary(const Model& model, std::vector<double> differences) {
  std::sort(differences.begin(), differences.end());
  return model.rounds_activations() ? differences[differences.size() / 2] : differences.back();
}

// Compares the logits of every token of the prompt on both devices.
double against_reference(const std::shared_ptr<const Model>& model, DType kv_type,
                         const std::vector<int32_t>& tokens, const ProgressFn& progress) {
  const std::shared_ptr<const Model> reference =
      Model::load({.path = model->info().path, .device = "reference", .progress = progress});
  const int64_t n = std::ssize(tokens);
  const PrefillOptions all = {.progress = progress, .n_logits = n};
  Session ours(model, check_options(kv_type)), theirs(reference, check_options(kv_type));
  ours.prefill(tokens, all);
  theirs.prefill(tokens, all);
  std::vector<double> differences;
  for (int64_t i = 0; i < n; ++i) {
    differences.push_back(difference(ours.prefill_logits(i), theirs.prefill_logits(i)));
  }
  return summary(*model, std::move(differences));
}

// Compares the last logits of one prefill with those of a shorter prefill followed by decode steps.
double prefill_against_decode(const std::shared_ptr<const Model>& model, DType kv_type,
                              int64_t n_seq, const std::vector<int32_t>& tokens,
                              const ProgressFn& progress) {
  const PrefillOptions all = {.progress = progress, .n_logits = kDecodedTokens + 1};
  Session whole(model, check_options(kv_type));
  whole.prefill(tokens, all);
  const std::span<const int32_t> beginning(tokens.data(), tokens.size() - kDecodedTokens);
  std::vector<Session> sessions;
  std::vector<Session*> batch;
  for (int64_t i = 0; i < n_seq; ++i) {
    sessions.emplace_back(model, check_options(kv_type));
    sessions.back().prefill(beginning, {.progress = progress});
  }
  for (Session& session : sessions) batch.push_back(&session);
  std::vector<double> differences = {difference(whole.prefill_logits(0), sessions[0].logits())};
  for (int64_t i = 0; i < kDecodedTokens; ++i) {
    const std::vector<int32_t> next(static_cast<size_t>(n_seq),
                                    tokens[beginning.size() + static_cast<size_t>(i)]);
    decode_batch(batch, next);
    for (const Session& session : sessions) {
      differences.push_back(difference(whole.prefill_logits(i + 1), session.logits()));
    }
  }
  return summary(*model, std::move(differences));
}

}  // namespace

BenchCheck check_model(const std::shared_ptr<const Model>& model, DType kv_type, int64_t n_seq,
                       uint64_t seed, const ProgressFn& progress) {
  const ModelInfo& info = model->info();
  BenchCheck check;
  check.tolerance = model->rounds_activations() ? kToleranceRounded : kToleranceF32;
  const std::vector<int32_t> tokens =
      random_tokens(check_length(*model, kv_type), info.n_vocab, seed);
  const int64_t n_tokens = std::ssize(tokens);
  const auto require = [&](const std::string& what, double found) {
    check.max_difference = std::max(check.max_difference, found);
    if (found <= check.tolerance) return;
    fail(ErrorCode::kRuntime,
         "{}: log-probabilities on {} differ by {:.3g} ({}; tolerance {}): not timed. "
         "--no-check times anyway",
         info.path, model->backend_description(), found, what, check.tolerance);
  };

  check.what.clear();
  if (info.n_params <= kReferenceMaxParams) {
    const int64_t n = info.n_params <= kLongReferenceMaxParams ? n_tokens : kShortTokens;
    const std::string what = fmt::format("reference, {} tokens", n);
    require(what,
            against_reference(model, kv_type, {tokens.begin(), tokens.begin() + n}, progress));
    check.what = what + "; ";
  }
  const int64_t batch = std::min<int64_t>(n_seq, 4);
  std::string what = fmt::format("prefill against decode, {} tokens", n_tokens);
  if (batch > 1) what += fmt::format(", batch of {}", batch);
  require(what, prefill_against_decode(model, kv_type, batch, tokens, progress));
  check.what += what;
  return check;
}

}  // namespace snapkv::cli
