// SPDX-License-Identifier: MIT
#include "cli/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <vector>

#include "cli/common/terminal.h"
#include "cli/common/units.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

// Of a sample; 0 when there is one value.
double stddev(const std::vector<double>& v) {
  if (v.size() < 2) return 0;
  const double m = mean(v);
  double sum = 0;
  for (const double x : v) sum += (x - m) * (x - m);
  return std::sqrt(sum / static_cast<double>(v.size() - 1));
}

std::vector<double> tokens_per_second(const BenchResult& r) {
  std::vector<double> rates;
  for (const double s : r.seconds) rates.push_back(static_cast<double>(r.n_tokens()) / s);
  return rates;
}

// "model name : AMD EPYC" of the first processor, as llama-bench has it.
std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

double mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string model_type(const ModelInfo& m) {
  return fmt::format("{} {} {}", m.architecture, format_count(m.n_params), m.file_type);
}

int64_t budget_of(const BenchTest& test) {
  return test.session.kv.name == "full" ? 0 : test.session.kv.budget;
}

double gflops(const BenchResult& r) { return r.flops / mean(r.seconds) / 1e9; }

double compression(const BenchResult& r) {
  return static_cast<double>(r.kv_bytes_full) / static_cast<double>(r.kv_bytes_used);
}

double select_percent(const PrefillParts& p) { return 100 * (p.score + p.gather) / p.total; }

// llama-bench's fields that say something here.
void add_llama_fields(Json& json, const BenchContext& c, const BenchResult& r) {
  const BenchTest& t = r.test;
  const std::vector<double> rates = tokens_per_second(r);
  std::vector<double> ns;
  for (const double s : r.seconds) ns.push_back(std::round(s * 1e9));
  json["build_commit"] = version();
  json["build_number"] = 0;
  json["cpu_info"] = cpu_name();
  json["gpu_info"] = "";
  json["backends"] = c.backend;
  json["model_filename"] = c.model.path;
  json["model_type"] = model_type(c.model);
  json["model_size"] = c.model.weight_bytes;
  json["model_n_params"] = c.model.n_params;
  json["n_batch"] = t.session.chunk;
  json["n_ubatch"] = t.session.chunk;
  json["n_threads"] = t.n_threads;
  json["type_k"] = name(t.session.kv_type);
  json["type_v"] = name(t.session.kv_type);
  json["n_prompt"] = t.n_prompt;
  json["n_gen"] = t.n_gen;
  json["n_depth"] = t.n_depth;
  json["test_time"] = r.time;
  json["avg_ns"] = static_cast<int64_t>(mean(ns));
  json["stddev_ns"] = static_cast<int64_t>(stddev(ns));
  json["avg_ts"] = mean(rates);
  json["stddev_ts"] = stddev(rates);
  json["samples_ns"] = std::vector<int64_t>(ns.begin(), ns.end());
  json["samples_ts"] = rates;
}

// Ours; null where a field does not apply.
void add_own_fields(Json& json, const BenchContext& c, const BenchResult& r) {
  const BenchTest& t = r.test;
  const std::vector<double> rates = tokens_per_second(r);
  const auto part = [&](double PrefillParts::*field) {
    return r.parts ? Json((*r.parts).*field) : Json();
  };
  const auto rate = [&](double amount, double seconds) {
    return amount > 0 && seconds > 0 ? Json(amount / seconds / 1e9) : Json();
  };
  json["weights"] = c.weights;
  json["n_seq"] = t.n_seq;
  json["kv_policy"] = t.session.kv.name;
  json["kv_budget"] = budget_of(t);
  json["kv_memory"] = t.session.kv_memory;
  json["kv_decode_limit"] = t.session.kv_decode_limit;
  json["best_ts"] = *std::max_element(rates.begin(), rates.end());
  json["prefill_s"] = part(&PrefillParts::total);
  json["pack_s"] = part(&PrefillParts::pack);
  json["linear_s"] = part(&PrefillParts::linear);
  json["attention_s"] = part(&PrefillParts::attention);
  json["score_s"] = part(&PrefillParts::score);
  json["gather_s"] = part(&PrefillParts::gather);
  json["select_percent"] = r.parts ? Json(select_percent(*r.parts)) : Json();
  json["gflops"] = gflops(r);
  json["linear_gflops"] = r.parts ? rate(r.linear_flops, r.parts->linear) : Json();
  json["attention_gflops"] = r.parts ? rate(r.attention_flops, r.parts->attention) : Json();
  json["gbps"] = rate(r.bytes_read, mean(r.seconds));
  json["kv_mib_full"] = mib(r.kv_bytes_full);
  json["kv_mib_peak"] = mib(r.kv_bytes_peak);
  json["kv_mib"] = mib(r.kv_bytes);
  json["compression"] = compression(r);
  json["peak_rss_mib"] = mib(r.peak_rss);
  json["peak_device_mib"] = r.peak_device > 0 ? Json(mib(r.peak_device)) : Json();
  json["check"] = c.check.what;
  json["check_max_diff"] = c.check.tolerance > 0 ? Json(c.check.max_difference) : Json();
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

class JsonPrinter final : public BenchPrinter {
 public:
  void add(const BenchContext& context, const BenchResult& result) override {
    write_stdout((first_ ? "[\n" : ",\n") + dump(to_json(context, result), 2));
    first_ = false;
  }
  void finish() override { write_stdout(first_ ? "[]\n" : "\n]\n"); }

 private:
  bool first_ = true;
};

class JsonLinesPrinter final : public BenchPrinter {
 public:
  void add(const BenchContext& context, const BenchResult& result) override {
    write_stdout(dump(to_json(context, result), -1) + "\n");
  }
  void finish() override {}
};

// Every value quoted; lists (the samples) have no column, as in llama-bench.
class CsvPrinter final : public BenchPrinter {
 public:
  void add(const BenchContext& context, const BenchResult& result) override {
    const Json json = to_json(context, result);
    std::string header, line;
    for (const auto& [key, value] : json.items()) {
      if (value.is_array()) continue;
      header += (header.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + quoted(value);
    }
    write_stdout((first_ ? header + "\n" : "") + line + "\n");
    first_ = false;
  }
  void finish() override {}

 private:
  static std::string quoted(const Json& value) {
    if (value.is_null()) return "\"\"";
    const std::string text = value.is_string() ? value.get<std::string>() : dump(value, -1);
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"') out += '"';
      out += c;
    }
    return out + "\"";
  }
  bool first_ = true;
};

// The whole table where it is read by a program or fits; on a terminal that is too narrow, the
// columns that matter most, so that no line breaks.
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
  }
  void finish() override {
    write_stdout(fmt::format("\nbuild: snapkv {}, {}; {}\n", version(), last_.backend, cpu_name()));
    if (n_dropped_ == 0) return;
    write_stdout(fmt::format("{} did not fit; -o csv, json or a pipe has all\n",
                             plural(n_dropped_, "more column")));
  }

 private:
  struct Cell {
    const char* title;
    int width;
    std::string text;
    int rank;  // the higher, the sooner it is left out
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
        {"threads", 7, fmt::format("{}", t.n_threads), 10},
        {"kv", 12, kv, 2},
        {"type", 4, std::string(name(t.session.kv_type)), 11},
        {"test", 18, t.label(), 0},
        {"t/s", 17, fmt::format("{:.2f} ± {:.2f}", mean(rates), stddev(rates)), 1},
        {"GFLOP/s", 7, number(gflops(r), 1), 5},
        {"GB/s", 6, number(r.bytes_read > 0 ? r.bytes_read / mean(r.seconds) / 1e9 : NAN, 1), 4},
        {"pack %", 6, share(parts.pack), 14},
        {"linear %", 8, share(parts.linear), 9},
        {"attn %", 6, share(parts.attention), 8},
        {"score %", 7, share(parts.score), 12},
        {"gather %", 8, share(parts.gather), 13},
        {"KV full", 10, format_bytes(r.kv_bytes_full), 15},
        {"KV peak", 10, format_bytes(r.kv_bytes_peak), 7},
        {"KV now", 10, format_bytes(r.kv_bytes), 3},
        {"peak RSS", 10, format_bytes(r.peak_rss), 6},
    };
  }

  const int most_columns_;
  bool first_ = true;
  int64_t n_dropped_ = 0;
  BenchContext last_;
};

}  // namespace

nlohmann::ordered_json to_json(const BenchContext& context, const BenchResult& result) {
  Json json;
  add_llama_fields(json, context, result);
  add_own_fields(json, context, result);
  return json;
}

std::unique_ptr<BenchPrinter> BenchPrinter::make(const std::string& format) {
  if (format == "json") return std::make_unique<JsonPrinter>();
  if (format == "jsonl") return std::make_unique<JsonLinesPrinter>();
  if (format == "csv") return std::make_unique<CsvPrinter>();
  const bool watched = stdout_is_terminal();
  return std::make_unique<MarkdownPrinter>(watched ? terminal_width()
                                                   : std::numeric_limits<int>::max());
}

}  // namespace snapkv::cli
