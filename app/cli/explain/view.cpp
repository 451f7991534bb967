// SPDX-License-Identifier: MIT
#include "cli/explain/view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/common/plain_text.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"

namespace snapkv::cli {
namespace {

constexpr size_t kTokenColumns = 16;
constexpr int kRowColumns = 51;    // width of a table row without its two bars
constexpr int64_t kLongRun = 12;   // most dropped tokens shown as one dot each
constexpr int64_t kLongDim = 200;  // most dropped tokens written out, dimmed
constexpr size_t kShownRanges = 24;

std::string quoted(const std::string& piece) { return "\"" + printable(piece) + "\""; }

/// Writes the steps of an explanation.
class View {
 public:
  View(const Explanation& e, const ViewOptions& options)
      : e_(e),
        r_(e.shown),
        kv_(e.session.kv),
        options_(options),
        draw_(options.utf8),
        n_tokens_(std::ssize(e.pieces)),
        n_prefix_(n_tokens_ - kv_.window_size),
        layer_(e.model.layers[r_.il]),
        n_group_(layer_.n_head / layer_.n_head_kv),
        is_kept_(static_cast<size_t>(n_prefix_), false) {
    for (int il = 0; il < std::ssize(e.model.layers); ++il) {
      if (il == r_.il || e.model.layers[il].rows_of == r_.il) readers_.push_back(il);
    }
    for (const int32_t j : r_.kept) is_kept_[j] = true;
    cut_ = std::numeric_limits<float>::infinity();
    highest_dropped_ = -cut_;
    for (size_t j = 0; j < is_kept_.size(); ++j) {
      if (is_kept_[j]) cut_ = std::min(cut_, r_.pooled[j]);
      if (!is_kept_[j]) highest_dropped_ = std::max(highest_dropped_, r_.pooled[j]);
    }
    // from the votes: sinks, which are always kept, have an infinite pooled score
    max_ = *std::max_element(r_.votes.begin(), r_.votes.end());
  }

  std::string text() const {
    const std::string steps = header() + observe() + vote() + rank() + keep() + drop();
    return wrapped(steps, static_cast<size_t>(options_.width)) + prompt();
  }

 private:
  std::string title(int number, const char* word, const char* what) const {
    return "\n" + paint(Style::bold, fmt::format("{} {}", number, word), options_.colour) +
           fmt::format("  {}\n", what);
  }

  std::string header() const {
    const ModelInfo& m = e_.model;
    std::string text = fmt::format("{}: {}, {} query heads, {} KV heads of {} values\n",
                                   terminal_text(m.name.empty() ? m.path : m.name, 300),
                                   plural(m.n_layer, "layer"), m.n_head, m.n_head_kv, m.head_dim);
    text += fmt::format(
        "prompt: L = {} tokens; window: W = {}; budget: B = {}{}; kernel {}, {} "
        "pooling\n",
        n_tokens_, kv_.window_size, kv_.budget,
        e_.budget_reason.empty() ? "" : " (" + e_.budget_reason + ")", kv_.kernel_size,
        kv_.max_pooling ? "max" : "avg");
    text += fmt::format("shown: layer {}, KV head {}, which serves query heads {} to {}\n", r_.il,
                        r_.head, r_.head * n_group_, (r_.head + 1) * n_group_ - 1);
    if (readers_.size() > 1) {
      text += fmt::format("       {} read its rows too, and vote with their queries\n",
                          plural(std::ssize(readers_) - 1, "later layer"));
    }
    if (!e_.chosen_of.empty()) {
      text += fmt::format(
          "       chosen: of {} its window looks most clearly at one token far back\n"
          "       (--layer and --head show others)\n",
          e_.chosen_of);
    }
    return text;
  }

  std::string observe() const {
    std::string window;
    for (int64_t t = n_prefix_; t < n_tokens_; ++t) window += e_.pieces[t];
    std::string text = title(1, "observe", "The last W tokens are the window. How do they attend?");
    text += fmt::format("  window   \"{}\"\n", printable(window));
    text += fmt::format("  queries  Q [n_head, W, head_dim] = {}\n",
                        format_shape({layer_.n_head, kv_.window_size, layer_.head_dim}));
    text += fmt::format("  keys     K [n_head_kv, L, head_dim] = {}\n",
                        format_shape({layer_.n_head_kv, n_tokens_, layer_.head_dim}));
    text += fmt::format("  scores   {}, causal: [n_head, W, L] = {}\n", score_formula(),
                        format_shape({layer_.n_head, kv_.window_size, n_tokens_}));
    text += "  softmax over all L columns, so each query's attention adds up to 1\n";
    text += fmt::format(
        "  {:.1f}% of the group's attention goes to the {} tokens before the "
        "window, {:.1f}% to the window itself\n",
        100 * r_.prefix_share, n_prefix_, 100 * (1 - r_.prefix_share));
    return text;
  }

  std::string score_formula() const {
    const auto head_dim = static_cast<float>(layer_.head_dim);
    std::string text = std::abs(layer_.scale * std::sqrt(head_dim) - 1.0f) < 1e-5f
                           ? fmt::format("Q K^T / sqrt({})", layer_.head_dim)
                           : fmt::format("{:g} Q K^T", layer_.scale);
    if (layer_.softcap > 0) {
      text = fmt::format("{0:g} tanh({1} / {0:g})", layer_.softcap, text);
    }
    return text;
  }

  std::string vote() const {
    std::string text = title(2, "vote", "Each query gives every earlier token its attention.");
    text += fmt::format("  summed over the W queries: [n_head, L - W] = {}\n",
                        format_shape({layer_.n_head, n_prefix_}));
    for (size_t h = 0; h < r_.query_votes.size(); ++h) {
      const auto at = static_cast<int64_t>(h);
      const std::string of =
          readers_.size() > 1 ? fmt::format("layer {:<3} ", readers_[at / n_group_]) : "";
      text += fmt::format("  {}query head {:<3} most for {}\n", of,
                          r_.head * n_group_ + at % n_group_, best_tokens(r_.query_votes[h], 3));
    }
    text += fmt::format("  group {}: [n_head_kv, L - W] = {}\n", kv_.mean_group ? "mean" : "max",
                        format_shape({layer_.n_head_kv, n_prefix_}));
    return text + "  votes   " + profile(r_.votes) + "\n" + scale_line();
  }

  static bool is_sink(int32_t j) { return static_cast<size_t>(j) < kSinks; }

  /// "   301" (4.12), ...: with their positions.
  std::string best_tokens(const std::vector<float>& votes, int64_t n) const {
    std::vector<int32_t> best = top_positions(votes, n);
    std::sort(best.begin(), best.end(), [&](int32_t a, int32_t b) { return votes[a] > votes[b]; });
    std::string text;
    for (const int32_t j : best) {
      text += fmt::format("{}{} at {}{}: {:.3f}", text.empty() ? "" : ", ", quoted(e_.pieces[j]), j,
                          is_sink(j) ? " (an attention sink)" : "", votes[j]);
    }
    return text;
  }

  int map_columns() const {
    return static_cast<int>(std::min<int64_t>(n_prefix_, std::max(20, options_.width - 12)));
  }
  /// Returns the first position of a column of the maps.
  int64_t column_begin(int column) const { return column * n_prefix_ / map_columns(); }

  /// Draws the whole prefix in one line; each column shows the highest value of its tokens.
  std::string profile(const std::vector<float>& values) const {
    std::vector<float> columns;
    for (int c = 0; c < map_columns(); ++c) {
      columns.push_back(*std::max_element(values.begin() + column_begin(c),
                                          values.begin() + column_begin(c + 1)));
    }
    return draw_.profile(columns, max_);
  }

  std::string scale_line() const {
    const std::string last = fmt::format("{}", n_prefix_ - 1);
    const int gap = std::max(1, map_columns() - 1 - static_cast<int>(last.size()));
    return paint(Style::dim, fmt::format("          0{:{}}{}", "", gap, last), options_.colour) +
           "\n";
  }

  std::string rank() const {
    const bool is_max = kv_.max_pooling;
    std::string text = title(3, "rank", "Neighbours share votes, so that facts stay whole.");
    text += fmt::format(
        "  pooled: the {} of the {} votes around each token: [n_head_kv, L - W] = "
        "{}\n",
        is_max ? "highest" : "mean", kv_.kernel_size, format_shape({layer_.n_head_kv, n_prefix_}));
    return text + "  votes   " + profile(r_.votes) + "\n  pooled  " + profile(r_.pooled) + "\n" +
           scale_line() + table();
  }

  std::string table() const {
    const std::vector<int32_t> rows = interesting_positions(r_, kv_.kernel_size, options_.n_rows);
    const int width = std::max(6, (options_.width - kRowColumns) / 2);
    std::string text = "\n" + paint(Style::dim,
                                    fmt::format("  {:>8}  {} {:<{}} {:<{}} {}\n", "position",
                                                fit("token", kTokenColumns, ""), "vote", width + 8,
                                                "pooled", width + 8, ""),
                                    options_.colour);
    int32_t next = 0;
    for (const int32_t j : rows) {
      text += not_shown(next, j) + table_row(j, width);
      next = j + 1;
    }
    return text + not_shown(next, static_cast<int32_t>(n_prefix_));
  }

  std::string table_row(int32_t j, int width) const {
    const size_t i = static_cast<size_t>(j);
    const auto cell = [&](float value) {
      return fmt::format("{:7.4f} {}", value, draw_.bar(value / max_, width));
    };
    const std::string line = fmt::format(
        "  {:>8}  {} {} {} {}", j, fit(quoted(e_.pieces[i]), kTokenColumns, draw_.ellipsis()),
        cell(r_.votes[i]), cell(r_.pooled[i]), is_kept_[i] ? "keep" : "drop");
    return paint(is_kept_[i] ? Style::bold : Style::dim, line, options_.colour) + "\n";
  }

  /// Returns a line that counts the tokens [begin, end), which have no row.
  std::string not_shown(int32_t begin, int32_t end) const {
    if (begin >= end) return "";
    const auto first = is_kept_.begin() + begin, last = is_kept_.begin() + end;
    const float highest = *std::max_element(r_.votes.begin() + begin, r_.votes.begin() + end);
    return paint(Style::dim,
                 fmt::format("  {:>8}  {} not shown, {} of them kept, highest vote {:.4f}\n",
                             draw_.ellipsis(), plural(end - begin, "token"),
                             std::count(first, last, true), highest),
                 options_.colour);
  }

  std::string keep() const {
    const int64_t n_keep = std::ssize(r_.kept);
    const std::vector<int32_t> unpooled = top_positions(r_.votes, n_keep);
    std::vector<int32_t> both;
    std::set_intersection(r_.kept.begin(), r_.kept.end(), unpooled.begin(), unpooled.end(),
                          std::back_inserter(both));
    std::string text = title(4, "keep", "The best-ranked tokens and the window stay.");
    text += fmt::format("  the B - W = {} highest pooled scores; ties go to the lower position\n",
                        n_keep);
    text += fmt::format("  cut: the lowest kept score is {:.6f}, the highest dropped {:.6f}{}\n",
                        cut_, highest_dropped_, cut_ == highest_dropped_ ? ": a tie" : "");
    text += fmt::format("  kernel {}: {} of the {} stay by their own votes, {} by a neighbour's\n",
                        kv_.kernel_size, both.size(), n_keep,
                        n_keep - static_cast<int64_t>(both.size()));
    text += "  kept    " + kept_map() + "\n" + scale_line();
    text += fmt::format("  positions {}; window {}-{}\n", format_positions(r_.kept, kShownRanges),
                        n_prefix_, n_tokens_ - 1);
    text += "  " + paint(Style::green, "checked:", options_.colour) +
            fmt::format(" the engine kept the same rows, in all {} {} {}\n",
                        plural(e_.model.n_compressed(), "layer"), draw_.times(),
                        plural(layer_.n_head_kv, "KV head"));
    const int64_t n_shared = std::count_if(e_.model.layers.begin(), e_.model.layers.end(),
                                           [](const LayerInfo& l) { return l.rows_of >= 0; });
    if (n_shared > 0) {
      text +=
          fmt::format("  {}: they read rows of earlier layers\n", plural(n_shared, "more layer"));
    }
    if (const int64_t n = e_.model.n_layer - e_.model.n_compressed() - n_shared; n > 0) {
      text += fmt::format("  {} with sliding windows: kept as they are\n", plural(n, "more layer"));
    }
    return text;
  }

  /// Draws the share of each column's tokens that is kept.
  std::string kept_map() const {
    std::vector<float> shares;
    for (int c = 0; c < map_columns(); ++c) {
      const auto first = is_kept_.begin() + column_begin(c);
      const auto last = is_kept_.begin() + column_begin(c + 1);
      shares.push_back(static_cast<float>(std::count(first, last, true)) /
                       static_cast<float>(last - first));
    }
    return draw_.profile(shares, 1);
  }

  std::string drop() const {
    double kept = 0, all = 0;
    for (size_t j = 0; j < r_.votes.size(); ++j) {
      all += r_.votes[j];
      if (is_kept_[j]) kept += r_.votes[j];
    }
    const SessionStats& s = e_.stats;
    std::string text = title(5, "drop", "The other rows' keys and values are freed.");
    text += fmt::format("  {} of {} tokens dropped here; the kept ones hold {:.1f}% of the votes\n",
                        n_tokens_ - kv_.budget, n_tokens_, all > 0 ? 100 * kept / all : 0.0);
    text += fmt::format("  K and V [n_head_kv, L, head_dim] {} {} {}, in each layer\n",
                        format_shape({layer_.n_head_kv, n_tokens_, layer_.head_dim}), draw_.arrow(),
                        format_shape({layer_.n_head_kv, kv_.budget, layer_.head_dim}));
    text += fmt::format("  cache of all layers ({}): {} {} {} ({:.1f}{})\n",
                        name(e_.session.kv_type), format_bytes(s.kv_bytes_full), draw_.arrow(),
                        format_bytes(s.kv_bytes_used), s.compression(), draw_.times());
    return text + "  every kept key keeps the rotation of its true position\n";
  }

  std::string prompt() const {
    std::string text =
        "\n" + paint(Style::bold, "What this head still sees", options_.colour) +
        (options_.colour
             ? " (dropped tokens dim)"
             : fmt::format(" (a dot for a dropped token, [{}n] for n of them)", draw_.ellipsis())) +
        "\n";
    for (int64_t begin = 0; begin < n_tokens_;) {
      int64_t end = begin;
      const bool kept = is_seen(begin);
      while (end < n_tokens_ && is_seen(end) == kept) ++end;
      text += kept ? paint(Style::bold, joined(begin, end), options_.colour) : gap(begin, end);
      begin = end;
    }
    return text + "\n";
  }

  bool is_seen(int64_t t) const { return t >= n_prefix_ || is_kept_[t]; }

  std::string joined(int64_t begin, int64_t end) const {
    std::string bytes;
    for (int64_t t = begin; t < end; ++t) bytes += e_.pieces[t];
    return printable(bytes, true);
  }

  std::string gap(int64_t begin, int64_t end) const {
    const int64_t n = end - begin;
    if (options_.colour) {
      if (n <= kLongDim) return paint(Style::dim, joined(begin, end), true);
      const int64_t half = kLongDim / 4;
      return paint(Style::dim,
                   joined(begin, begin + half) +
                       fmt::format(" [{} not written out] ", plural(n - 2 * half, "token")) +
                       joined(end - half, end),
                   true);
    }
    if (n > kLongRun) return fmt::format("[{}{}]", draw_.ellipsis(), n);
    std::string dots;
    for (int64_t i = 0; i < n; ++i) dots += draw_.dot();
    return dots;
  }

  const Explanation& e_;
  const HeadRanking& r_;
  const SnapKvRule kv_;
  const ViewOptions& options_;
  const Drawing draw_;
  const int64_t n_tokens_, n_prefix_;
  const LayerInfo& layer_;  // the shown one
  const int64_t n_group_;
  std::vector<int> readers_;   // the layers that see its rows, itself first
  std::vector<bool> is_kept_;  // [L - W]
  float cut_ = 0, highest_dropped_ = 0;
  float max_ = 0;  // highest vote: a full bar
};

}  // namespace

std::string show_explanation(const Explanation& e, const ViewOptions& view) {
  return View(e, view).text();
}

std::string show_nothing_dropped(int64_t n_tokens, int64_t budget) {
  return fmt::format(
      "The prompt has L = {} tokens and the budget is B = {}: SnapKV keeps everything when L <= B, "
      "and takes no step.\nA longer prompt or a smaller --kv-budget (above the window, "
      "--kv-window) shows them.\n",
      n_tokens, budget);
}

}  // namespace snapkv::cli
