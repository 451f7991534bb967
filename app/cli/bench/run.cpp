// SPDX-License-Identifier: MIT
// Times the tests. A repetition of a prompt test reads the prompt into a new cache. A repetition of
// a decode test at depth 0 begins with a new cache of one token; at other depths it continues where
// the last one stopped, because reading the depth again would take longer than everything else:
// repetition r begins at depth + r * n_gen.
#include "cli/bench/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/timer.h"
#include "cli/bench/tokens.h"
#include "cli/common/signals.h"
#include "cli/generate/report.h"
#include "eval/common/origin.h"

namespace snapkv::cli {
namespace {

constexpr int64_t kWarmupTokens = 512;  // enough to touch every weight and wake every thread

// Linux resets the process's peak on request; elsewhere the peak is that of all tests so far.
void reset_peak_rss() { std::ofstream("/proc/self/clear_refs") << "5"; }

// VmHWM reflects that reset, getrusage does not.
size_t peak_rss_since_reset() {
  std::ifstream in("/proc/self/status");
  std::string word;
  while (in >> word) {
    if (word != "VmHWM:") continue;
    size_t kib = 0;
    if (in >> kib) return kib * 1024;
  }
  return peak_rss();
}

bool alike(const BenchTest& a, const BenchTest& b) {
  // the other options are the same for all tests
  return a.n_threads == b.n_threads && a.n_depth == b.n_depth && a.n_seq == b.n_seq &&
         a.n_step == b.n_step && a.session.kv_type == b.session.kv_type &&
         a.session.kv == b.session.kv && a.session.kv_memory == b.session.kv_memory;
}

PrefillParts parts_of(const SessionStats& s) {
  return {.total = s.prefill_seconds,
          .pack = s.pack_seconds,
          .linear = s.linear_seconds,
          .attention = s.attention_seconds,
          .score = s.score_seconds,
          .gather = s.gather_seconds};
}

// sum += (after - before) * weight
void add_difference(PrefillParts& sum, const PrefillParts& before, const PrefillParts& after,
                    double weight) {
  sum.total += (after.total - before.total) * weight;
  sum.pack += (after.pack - before.pack) * weight;
  sum.linear += (after.linear - before.linear) * weight;
  sum.attention += (after.attention - before.attention) * weight;
  sum.score += (after.score - before.score) * weight;
  sum.gather += (after.gather - before.gather) * weight;
}

}  // namespace

BenchRunner::BenchRunner(std::shared_ptr<const Model> model, const ModelCost& cost,
                         const BenchSettings& settings, ProgressDisplay& progress)
    : model_(std::move(model)),
      cost_(cost),
      settings_(settings),
      progress_(progress),
      measures_limits_(!settings.no_limits && model_->backend_description().rfind("cpu", 0) == 0) {}

BenchResult BenchRunner::run(const BenchTest& test) {
  BenchResult result;
  result.test = test;
  result.time = eval::utc_now();
  if (held_for_ && !alike(*held_for_, test)) {  // frees them before the memory peak is reset
    sessions_.clear();
    held_for_.reset();
  }
  if (measures_limits_) result.limits = measure_machine_limits(test.n_threads);
  reset_peak_rss();
  model_->reset_device_peak();
  if (!settings_.no_warmup) warm_up(test);
  if (test.n_prompt > 0) {
    measure_prefill(result);
  } else {
    measure_decode(result);
  }
  if (result.limits) choose_products(result);
  result.peak_rss = peak_rss_since_reset();
  result.peak_device = model_->device_bytes_peak();
  return result;
}

void BenchRunner::choose_products(BenchResult& result) const {
  const MachineLimits& limits = *result.limits;
  const Products compute = compute_products(model_->compute_dtype(), limits);
  const bool packed = result.parts && result.parts->pack > 0 && !model_->rounds_prompts();
  result.work.linear_products =
      packed ? compute
             : direct_products(model_->info().file_type, model_->rounds_activations(), limits);
  result.work.attention_products = result.parts ? compute : Products::f32;
}

void BenchRunner::read(Session& session, int64_t n_tokens, uint64_t stream) {
  if (n_tokens == 0) return;
  const uint64_t seed = settings_.seed * 1'000'003 + stream;
  session.prefill(random_tokens(n_tokens, model_->info().n_vocab, seed),
                  {.progress = progress_.callback()});
}

void BenchRunner::warm_up(const BenchTest& test) {
  Session session(model_, test.session);
  read(session, std::clamp<int64_t>(test.n_prompt, 1, kWarmupTokens), 0);
  if (test.n_gen > 0) session.decode(0);
}

void BenchRunner::measure_prefill(BenchResult& result) {
  const BenchTest& test = result.test;
  Session session(model_, test.session);
  PrefillParts parts;
  double n_rows = 0;
  for (int64_t r = 0; r < settings_.repetitions; ++r) {
    session.reset();
    read(session, test.n_depth, 0);
    const PrefillParts before = parts_of(session.stats());
    n_rows = cost_.rows(session.stats().kv_bytes_used, test.session.kv_type);
    const Timer timer;
    read(session, test.n_prompt, 1);
    result.seconds.push_back(timer.seconds());
    add_difference(parts, before, parts_of(session.stats()),
                   1.0 / static_cast<double>(settings_.repetitions));
  }
  result.parts = parts;
  const bool full = test.session.kv.name == "full";  // it has no window
  result.work.linear =
      cost_.prefill_linear_flops(test.n_prompt, full ? 0 : policy_window(test.session.kv));
  result.work.attention = cost_.prefill_attention_flops(test.n_prompt, n_rows);
  result.work.bytes = cost_.prefill_bytes(test.n_prompt, test.session.kv_type);
  finish(result, {&session, 1});
}

std::span<Session> BenchRunner::sessions_for(const BenchTest& test) {
  if (!held_for_) {
    for (int64_t i = 0; i < test.n_seq; ++i) {
      sessions_.emplace_back(model_, test.session);
      read(sessions_.back(), test.n_depth, static_cast<uint64_t>(i));
    }
    held_for_ = test;
  }
  return sessions_;
}

void BenchRunner::measure_decode(BenchResult& result) {
  const BenchTest& test = result.test;
  const DType kv_type = test.session.kv_type;
  const std::span<Session> sessions = sessions_for(test);
  std::vector<Session*> batch;
  for (Session& session : sessions) batch.push_back(&session);
  const std::vector<int32_t> tokens = random_tokens(test.n_gen * test.n_seq, model_->info().n_vocab,
                                                    settings_.seed * 1'000'003 + 2);
  const double weight = 1.0 / static_cast<double>(settings_.repetitions);
  const auto step_tokens = [&](int64_t left) {
    int64_t n = std::min(test.n_step, left);
    // fewer before kv_decode_limit compresses; without room for one, decoding says so
    for (const Session& session : sessions) n = std::min(n, session.decode_room());
    return std::max<int64_t>(n, 1);
  };

  for (int64_t r = 0; r < settings_.repetitions; ++r) {
    if (test.n_depth == 0) {
      for (Session& session : sessions) {
        session.reset();
        read(session, 1, 0);
      }
    }
    double bytes = 0, attention = 0;
    const Timer timer;
    for (int64_t i = 0, n = 0; i < test.n_gen; i += n) {
      if (interrupted()) fail(ErrorCode::kCancelled, "stopped by {}", interruption());
      n = step_tokens(test.n_gen - i);
      std::vector<StepTokens> steps;
      for (int64_t s = 0; s < test.n_seq; ++s) {
        steps.push_back(StepTokens(tokens).subspan(s * test.n_gen + i, n));
      }
      decode_steps(batch, steps);
      size_t used = 0;
      for (const Session& session : sessions) used += session.stats().kv_bytes_used;
      bytes +=
          static_cast<double>(cost_.decode_weight_bytes()) + cost_.kv_bytes_read(used, kv_type);
      // a token does not see those of its step that come after it
      const auto unseen = static_cast<double>(test.n_seq * n * (n - 1)) / 2;
      const double rows = static_cast<double>(n) * cost_.rows(used, kv_type) - unseen;
      attention += cost_.decode_attention_flops(rows);
      progress_.show_decode(i + n, test.n_gen, timer.seconds());  // redraws a few times a second
    }
    result.seconds.push_back(timer.seconds());
    result.work.bytes += bytes * weight;
    result.work.attention += attention * weight;
  }
  result.work.linear = static_cast<double>(test.n_gen) * cost_.decode_linear_flops(test.n_seq);
  finish(result, sessions);
}

void BenchRunner::finish(BenchResult& result, std::span<const Session> sessions) const {
  for (const Session& session : sessions) {
    const SessionStats& s = session.stats();
    result.kv_bytes_full += s.kv_bytes_full;
    result.kv_bytes_peak += s.kv_bytes_peak;
    result.kv_bytes += s.kv_bytes;
    result.kv_bytes_used += s.kv_bytes_used;
  }
}

}  // namespace snapkv::cli
