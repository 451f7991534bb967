// SPDX-License-Identifier: MIT
#include "cli/bench/report_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/bench/report_values.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "eval/common/origin.h"

namespace snapkv::cli {
namespace {

class MarkdownPrinter final : public BenchPrinter {
 public:
  explicit MarkdownPrinter(int most_columns) : most_columns_(most_columns) {}

  void add(const BenchContext& context, const BenchResult& result) override {
    std::vector<Cell> cells = cells_of(context, result);
    drop_columns(cells);
    if (first_) {
      if (n_dropped_ > 0) {
        write_stdout(fmt::format("{}, {}\n\n", model_type(context.model),
                                 format_bytes(context.model.weight_bytes)));
      }
      std::string header = "|", rule = "|";
      for (const Cell& c : cells) {
        header += fmt::format(" {:>{}} |", c.title, c.width);
        rule += " " + std::string(static_cast<size_t>(c.width - 1), '-') + ": |";
      }
      write_stdout(header + "\n" + rule + "\n");
      first_ = false;
    }
    std::string line = "|";
    for (const Cell& c : cells) line += fmt::format(" {:>{}} |", c.text, c.width);
    write_stdout(line + "\n");
    last_ = context;
    has_limits_ = has_limits_ || result.limits;
  }
  void finish() override {
    write_stdout(
        fmt::format("\nbuild: snapkv {}, {}; {}\n", version(), last_.backend, eval::cpu_name()));
    if (has_limits_) {
      write_stdout(
          "% limit: of what this machine multiplies (ops) or reads (mem) at most, measured\n"
          "before each test\n");
    }
    if (n_dropped_ == 0) return;
    write_stdout(fmt::format("{} did not fit; -o csv, json or a pipe has all\n",
                             plural(n_dropped_, "more column")));
  }

 private:
  struct Cell {
    const char* title;
    int width;
    std::string text;
    int rank;  // columns of higher rank are left out first
  };

  // Leaves out the columns of the highest rank until the others fit.
  void drop_columns(std::vector<Cell>& cells) {
    const auto width = [&] {
      int sum = 1;
      for (const Cell& c : cells) sum += c.width + 3;
      return sum;
    };
    const size_t n_all = cells.size();
    while (width() > most_columns_ && cells.size() > 2) {
      const auto last = std::max_element(
          cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.rank < b.rank; });
      cells.erase(last);
    }
    n_dropped_ = static_cast<int64_t>(n_all - cells.size());
  }

  // Returns "92 mem": the percentage, and the limit it refers to.
  static std::string limit_of(const BenchResult& r) {
    if (!r.limits) return "-";
    return fmt::format("{:.0f} {}", percent_of_limit(r, *r.limits),
                       least_time(r.work, *r.limits).by_memory() ? "mem" : "ops");
  }

  static std::vector<Cell> cells_of(const BenchContext& c, const BenchResult& r) {
    const BenchTest& t = r.test;
    const std::vector<double> rates = tokens_per_second(r);
    const auto number = [](double value, int decimals) {
      return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : std::string("-");
    };
    const auto share = [&](double seconds) {
      return number(r.parts ? 100 * seconds / r.parts->total : NAN, 1);
    };
    const PrefillParts parts = r.parts.value_or(PrefillParts{});
    const std::string kv = budget_of(t) == 0
                               ? t.session.kv.name
                               : fmt::format("{} {}", t.session.kv.name, t.session.kv.budget);
    return {
        {"model", 22, model_type(c.model), 18},
        {"size", 10, format_bytes(c.model.weight_bytes), 17},
        {"threads", 7, fmt::format("{}", t.n_threads), 11},
        {"kv", 12, kv, 2},
        {"type", 4, std::string(name(t.session.kv_type)), 12},
        {"test", 18, t.label(), 0},
        {"t/s", 17, fmt::format("{:.2f} ± {:.2f}", mean(rates), stddev(rates)), 1},
        {"GFLOP/s", 7, number(gflops(r), 1), 6},
        {"GB/s", 6, number(r.parts ? NAN : r.work.bytes / mean(r.seconds) / 1e9, 1), 5},
        {"% limit", 7, limit_of(r), 4},
        {"pack %", 6, share(parts.pack), 15},
        {"linear %", 8, share(parts.linear), 10},
        {"attn %", 6, share(parts.attention), 9},
        {"score %", 7, share(parts.score), 13},
        {"gather %", 8, share(parts.gather), 14},
        {"KV full", 10, format_bytes(r.kv_bytes_full), 16},
        {"KV peak", 10, format_bytes(r.kv_bytes_peak), 8},
        {"KV now", 10, format_bytes(r.kv_bytes), 3},
        {"peak RSS", 10, format_bytes(r.peak_rss), 7},
    };
  }

  const int most_columns_;
  bool first_ = true;
  int64_t n_dropped_ = 0;
  bool has_limits_ = false;
  BenchContext last_;
};

}  // namespace

std::unique_ptr<BenchPrinter> make_table_printer(int most_columns) {
  return std::make_unique<MarkdownPrinter>(most_columns);
}

}  // namespace snapkv::cli
