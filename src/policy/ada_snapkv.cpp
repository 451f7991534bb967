// SPDX-License-Identifier: MIT
// Policy "ada-snapkv" (Feng et al., arXiv 2407.11550): SnapKV's scores, but the rows of a layer
// compete across its heads, so that a head with spread-out attention keeps more than a head with
// few spikes. With B = budget - W and count[h] = rows of head h among the n_head_kv * B highest
// pooled scores of the layer, head h keeps round(count[h] * (1 - floor) + floor(B * floor)) rows,
// then its window. The rows that rounding leaves over (or lacks) are given to (or taken from) the
// heads with the largest rounding errors, so the layer's total is exact.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "policy/policy_registry.h"
#include "policy/votes.h"

namespace snapkv {
namespace {

struct AdaSnapKvParams : SnapKvParams {
  double head_floor = 0.2;
};

/// Integers near `wanted` with the given sum, each between 0 and its `most`.
std::vector<int32_t> round_to_sum(const std::vector<double>& wanted,
                                  const std::vector<int32_t>& most, int64_t sum) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < wanted.size(); ++i) {
    out.push_back(std::min(static_cast<int32_t>(std::lround(wanted[i])), most[i]));
  }
  int64_t rest = sum - std::accumulate(out.begin(), out.end(), int64_t{0});
  const int32_t step = rest > 0 ? 1 : -1;
  for (; rest != 0; rest -= step) {
    size_t best = out.size();
    for (size_t i = 0; i < out.size(); ++i) {
      if (step > 0 ? out[i] >= most[i] : out[i] == 0) continue;
      if (best == out.size() || step * (wanted[i] - out[i]) > step * (wanted[best] - out[best])) {
        best = i;
      }
    }
    SNAPKV_CHECK(best < out.size());  // the sum is between 0 and the sum of `most`
    out[best] += step;
  }
  return out;
}

class AdaSnapKvSelector final : public SnapKvSelector<AdaSnapKvParams> {
 public:
  using SnapKvSelector::SnapKvSelector;

 private:
  // Heads within the budget keep all their rows; the other heads share what they do not need.
  std::vector<int32_t> prefix_budgets(const ScoreInput& input, const Tensor& scores,
                                      int64_t budget) override {
    const int64_t base = budget - input.q_window.shape[0];
    std::vector<int32_t> k(input.n_prefix.begin(), input.n_prefix.end());
    std::vector<int64_t> heads;  // that compete
    std::vector<int32_t> rows;   // their n_prefix
    int64_t total = base * std::ssize(k);
    for (int64_t h = 0; h < std::ssize(k); ++h) {
      if (k[h] > base) {
        heads.push_back(h);
        rows.push_back(k[h]);
      } else {
        total -= k[h];
      }
    }
    const int64_t all_rows = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    total = std::min(total, all_rows);
    const std::vector<int32_t> counts = count_highest(scores, heads, rows, total);
    const double floor = params().head_floor;
    std::vector<double> wanted;
    for (int32_t count : counts) {
      wanted.push_back(count * (1.0 - floor) + std::floor(static_cast<double>(base) * floor));
    }
    const std::vector<int32_t> shares = round_to_sum(wanted, rows, total);
    for (size_t i = 0; i < heads.size(); ++i) k[heads[i]] = shares[i];
    return k;
  }

  /// How many of the `total` highest scores over all of `heads` each head has.
  std::vector<int32_t> count_highest(const Tensor& scores, const std::vector<int64_t>& heads,
                                     const std::vector<int32_t>& rows, int64_t total) const {
    const int64_t n_rows = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    if (n_rows > std::numeric_limits<int32_t>::max()) {
      fail(ErrorCode::kDoesNotFit,
           "policy \"{}\" ranks the {} rows of a layer's heads together, it can rank {}",
           info().name, n_rows, std::numeric_limits<int32_t>::max());
    }
    const auto n = static_cast<int32_t>(n_rows), k = static_cast<int32_t>(total);
    const Floats flat(backend(), {1, n}, "scores of all heads");  // one head after the other
    int64_t begin = 0;
    for (size_t i = 0; i < heads.size(); ++i) {
      backend().copy(flat.view.at<float>(0, begin), scores.at<void>(heads[i]),
                     rows[i] * sizeof(float));
      begin += rows[i];
    }
    const Buffer top_storage = backend().allocate(total * sizeof(int32_t), "rows of all heads");
    const Tensor top_rows = top_storage.view(DType::i32, {1, total});
    ops::top_k(backend(), flat, {&n, 1}, {&k, 1}, 0, top_rows);
    const Buffer top_on_host = backend().allocate_host(total * sizeof(int32_t), "rows on the host");
    if (!backend().computes()) {  // as if all heads were alike
      return std::vector<int32_t>(rows.size(), static_cast<int32_t>(total / std::ssize(rows)));
    }
    backend().download(top_on_host.data(), top_rows.data, total * sizeof(int32_t));
    const std::span top(static_cast<const int32_t*>(top_on_host.data()), total);
    std::vector<int32_t> counts;
    auto from = top.begin();
    int32_t end = 0;
    for (const int32_t n_head : rows) {
      end += n_head;
      const auto to = std::lower_bound(from, top.end(), end);
      counts.push_back(static_cast<int32_t>(to - from));
      from = to;
    }
    return counts;
  }
};

}  // namespace

PolicyDefinition ada_snapkv_policy() {
  return define_policy<ScorePolicy<AdaSnapKvSelector>>(
      {.name = "ada-snapkv",
       .score = "as snapkv; the heads of a layer share its rows",
       .paper = "2407.11550",
       .reads = "window, keys",
       .shares_budget = true},
      join<AdaSnapKvParams>(snapkv_fields(),
                            Fields<AdaSnapKvParams>{field(
                                &AdaSnapKvParams::head_floor,
                                {.name = "head_floor",
                                 .help = "Share of a head's budget that other heads can't take",
                                 .least = 0,
                                 .most = 1})}));
}

}  // namespace snapkv
