// SPDX-License-Identifier: MIT
// Sampler: turns logits into one token. The steps run in the order that sampler.h documents.
// Nothing is sorted further than the answer needs, so that a vocabulary of 128k tokens stays cheap
// beside a decode step.
#include "snapkv/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <unordered_map>

#include "base/error.h"
#include "snapkv/grammar.h"
#include "snapkv/options.h"

#if defined(__clang__)
// GCC contracts nothing in ISO mode (-std=c++20), which CMake selects
#pragma STDC FP_CONTRACT OFF
#endif

namespace snapkv {
namespace {

// xoshiro256++ (Blackman and Vigna, public domain), seeded by splitmix64. The standard library's
// distributions differ between implementations; this does not.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t next() {
    auto& s = state_;
    const uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = std::rotl(s[3], 45);
    return result;
  }
  std::array<uint64_t, 4> state_;
};

// 1 / n! for n = 0..14, Taylor's coefficients; the next term is below 2^-60 for |r| <= ln2 / 2.
constexpr std::array<double, 15> kInverseFactorials = [] {
  std::array<double, 15> values{};
  double factorial = 1.0;
  for (size_t n = 0; n < values.size(); ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    values[n] = 1.0 / factorial;
  }
  return values;
}();

// e^x for x <= 0, to about 1e-16, with additions and multiplications only. libm's exp rounds
// differently between machines, and one rounding may move a draw to the neighbouring token.
double portable_exp(double x) {
  if (x < -700.0) return 0.0;
  constexpr double kLog2E = 1.4426950408889634, kLn2High = 0x1.62e42feep-1,
                   kLn2Low = 0x1.a39ef35793c76p-33;
  const double k = std::floor(x * kLog2E + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln2 / 2
  double sum = kInverseFactorials.back();
  for (size_t n = kInverseFactorials.size() - 1; n-- > 0;) sum = kInverseFactorials[n] + sum * r;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(1023 + static_cast<int64_t>(k)) << 52);
}

struct Candidate {
  float logit = 0.0f;
  int32_t id = 0;
};

// Descending logits, ties to the lower id. This is a total order, so a sorted prefix is unique.
bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The last n tokens (all if n < 0) and how often each of them occurs.
class History {
 public:
  explicit History(int limit) : limit_(limit) {}
  void add(int32_t id) {
    if (limit_ == 0) return;
    ++counts_[id];
    if (limit_ < 0) return;
    last_.push_back(id);
    if (std::ssize(last_) <= limit_) return;
    const auto oldest = counts_.find(last_.front());
    if (--oldest->second == 0) counts_.erase(oldest);
    last_.pop_front();
  }
  const std::unordered_map<int32_t, int64_t>& counts() const { return counts_; }

 private:
  int limit_;
  std::deque<int32_t> last_;
  std::unordered_map<int32_t, int64_t> counts_;
};

// Keeps the k best candidates, sorted.
void apply_top_k(std::vector<Candidate>& candidates, size_t k) {
  k = std::min(k, candidates.size());
  const auto end = candidates.begin() + k;
  std::partial_sort(candidates.begin(), end, candidates.end(), before);
  candidates.resize(k);
}

// Keeps the tokens whose surprise -ln p is nearest to its mean, until their probability exceeds
// typical_p; of the same distance the earlier candidate. With the logits' distances to the best one
// instead of -ln p, the normalization cancels out.
// Returns the highest logit that is left.
float apply_typical_p(std::vector<Candidate>& candidates, double typical_p, float best) {
  double total = 0.0, mean = 0.0;
  for (const Candidate& c : candidates) {
    const double below = double{c.logit} - best, weight = portable_exp(below);
    total += weight;
    mean += weight * below;
  }
  mean /= total;
  std::vector<std::pair<double, size_t>> order;  // distance to the mean, and the candidate
  for (size_t i = 0; i < candidates.size(); ++i) {
    order.emplace_back(std::abs(double{candidates[i].logit} - best - mean), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<bool> stays(candidates.size());
  double reached = 0.0;
  for (const auto& [distance, i] : order) {
    stays[i] = true;
    reached += portable_exp(double{candidates[i].logit} - best);
    if (reached > typical_p * total) break;
  }
  size_t n = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (stays[i]) candidates[n++] = candidates[i];
  }
  candidates.resize(n);
  return std::min_element(candidates.begin(), candidates.end(), before)->logit;
}

// Keeps the shortest sorted prefix whose probability reaches top_p, and at least one candidate.
// Sorts in steps of growing size, since a nucleus is nearly always a few tokens of a large
// vocabulary.
void apply_top_p(std::vector<Candidate>& candidates, double top_p, float best, bool sorted) {
  double total = 0.0;
  for (const Candidate& c : candidates) total += portable_exp(double{c.logit} - best);
  double reached = 0.0;
  size_t n_sorted = sorted ? candidates.size() : 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i == n_sorted) {
      n_sorted = std::min(candidates.size(), std::max<size_t>(64, n_sorted * 4));
      const auto at = [&](size_t n) { return candidates.begin() + n; };
      std::partial_sort(at(i), at(n_sorted), candidates.end(), before);
    }
    reached += portable_exp(double{candidates[i].logit} - best);
    if (reached >= top_p * total) {
      candidates.resize(i + 1);
      return;
    }
  }
}

void check(const SamplerConfig& c) {
  sampler_option_table().check(c);
  for (const LogitBias& b : c.logit_bias) {
    if (b.id < 0) fail(ErrorCode::kUsage, "the id of logit_bias is {}; it must be 0 or more", b.id);
    const bool is_ban = b.bias == -std::numeric_limits<double>::infinity();
    if (!is_ban && !(std::abs(b.bias) <= SamplerConfig::kMostBias)) {  // a NaN too
      fail(ErrorCode::kUsage, "{} is {}; it must be from -{} to {}, or -infinity",
           OptionName("logit_bias"), b.bias, SamplerConfig::kMostBias, SamplerConfig::kMostBias);
    }
  }
}

}  // namespace

int64_t drawn_seed(int64_t seed) {
  if (seed != SamplerConfig::kRandomSeed) return seed;
  return static_cast<int64_t>(std::random_device{}() & 0x7fffffffu);
}

struct Sampler::Impl {
  explicit Impl(const SamplerConfig& c)
      : config(c),
        random(static_cast<uint64_t>(drawn_seed(c.seed))),
        history(c.repeat_last_n) {}

  /// The logits after grammar, bias and penalties; the argument itself if nothing changes them.
  std::span<const float> adjust(std::span<const float> logits) {
    const bool penalized = has_penalty() && !history.counts().empty();
    if (!grammar && config.logit_bias.empty() && !penalized) return logits;
    adjusted.assign(logits.begin(), logits.end());
    if (grammar) grammar->apply(adjusted);
    for (const auto& [id, bias] : config.logit_bias) {
      if (id < std::ssize(adjusted)) adjusted[id] = within_f32(adjusted[id] + bias);
    }
    if (penalized) apply_penalties();
    return adjusted;
  }

  /// Clamps a finite number beyond f32 to the largest one; as infinity it would count as a ban.
  static float within_f32(double logit) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    return static_cast<float>(std::isfinite(logit) ? std::clamp(logit, -kLargest, kLargest)
                                                   : logit);
  }

  bool has_penalty() const {
    return config.repeat_penalty != 1.0 || config.presence_penalty != 0.0 ||
           config.frequency_penalty != 0.0;
  }

  void apply_penalties() {
    for (const auto& [id, count] : history.counts()) {
      if (id < 0 || id >= std::ssize(adjusted)) continue;
      float& logit = adjusted[id];
      const double repeated = logit > 0 ? logit / config.repeat_penalty  //
                                        : logit * config.repeat_penalty;
      logit = within_f32(repeated - config.presence_penalty -
                         static_cast<double>(count) * config.frequency_penalty);
    }
  }

  void add(int32_t id) {
    tokens.push_back(id);
    history.add(id);
  }

  /// The highest finite logit, ties to the lower id; nothing if none is finite.
  static std::optional<Candidate> best_of(std::span<const float> logits) {
    std::optional<Candidate> best;
    for (size_t id = 0; id < logits.size(); ++id) {
      if (!std::isfinite(logits[id]) || (best && logits[id] <= best->logit)) continue;
      best = {logits[id], static_cast<int32_t>(id)};
    }
    return best;
  }

  /// Filters the candidates and draws one; `best` is the highest logit.
  int32_t draw(std::span<const float> logits, float best) {
    candidates.clear();
    for (size_t id = 0; id < logits.size(); ++id) {
      if (std::isfinite(logits[id])) candidates.push_back({logits[id], static_cast<int32_t>(id)});
    }
    if (config.top_k > 0) apply_top_k(candidates, config.top_k);
    if (config.typical_p < 1.0) best = apply_typical_p(candidates, config.typical_p, best);
    if (config.top_p < 1.0) apply_top_p(candidates, config.top_p, best, config.top_k > 0);
    if (config.min_p > 0.0) {  // the best candidate's weight is 1, so it always stays
      std::erase_if(candidates, [&](const Candidate& c) {
        return c.logit < best && portable_exp(double{c.logit} - best) < config.min_p;
      });
    }
    weights.resize(candidates.size());
    double total = 0.0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      weights[i] = portable_exp((double{candidates[i].logit} - best) / config.temperature);
      total += weights[i];
    }
    const double target = random.uniform() * total;
    double reached = 0.0;
    size_t chosen = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (weights[i] == 0.0) continue;
      chosen = i;  // the last one, if rounding leaves `reached` below the target
      reached += weights[i];
      if (reached > target) break;
    }
    return candidates[chosen].id;
  }

  SamplerConfig config;
  std::optional<GrammarMatcher> grammar;
  Random random;
  std::vector<int32_t> tokens;  // all, in order
  History history;              // those that penalties look back at
  std::vector<float> adjusted;        // [n_vocab]
  std::vector<Candidate> candidates;  // at most [n_vocab]
  std::vector<double> weights;        // of the candidates, after temperature
};

Sampler::Sampler(const SamplerConfig& config) {
  check(config);
  impl_ = std::make_unique<Impl>(config);
}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

Sampler::Impl& Sampler::state() const {
  if (impl_ == nullptr) fail(ErrorCode::kUsage, "the sampler was moved from");
  return *impl_;
}

int32_t Sampler::sample(std::span<const float> logits) {
  Impl& s = state();
  const std::span<const float> adjusted = s.adjust(logits);
  const std::optional<Candidate> best = Impl::best_of(adjusted);
  if (!best) {
    if (Impl::best_of(logits)) {
      fail(ErrorCode::kRuntime, "no token is left: {} allows none of the {} that the model can say",
           s.grammar ? s.grammar->grammar().name() : "logit_bias", logits.size());
    }
    fail(ErrorCode::kRuntime, "none of the {} logits is finite: the model's output is unusable",
         logits.size());
  }
  const bool greedy = s.config.temperature == 0.0 || s.config.top_k == 1;
  const int32_t id = greedy ? best->id : s.draw(adjusted, best->logit);
  if (s.grammar) s.grammar->accept(id);
  s.add(id);
  return id;
}

void Sampler::accept(std::span<const int32_t> tokens) {
  for (const int32_t id : tokens) state().add(id);
}

const std::vector<int32_t>& Sampler::history() const { return state().tokens; }

void Sampler::set_grammar(GrammarMatcher matcher) { state().grammar = std::move(matcher); }

void Sampler::clear_grammar() { state().grammar.reset(); }

const GrammarMatcher* Sampler::grammar() const {
  return state().grammar ? &*state().grammar : nullptr;
}

}  // namespace snapkv
