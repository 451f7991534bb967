// SPDX-License-Identifier: MIT
#include "cli/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
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

class MarkdownPrinter final : public BenchPrinter {
 public:
  void add(const BenchContext& context, const BenchResult& result) override {
    const std::vector<Cell> cells = cells_of(context, result);
    if (first_) {
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
  }

 private:
  struct Cell {
    const char* title;
    int width;
    std::string text;
  };

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
        {"model", 22, model_type(c.model)},
        {"size", 10, format_bytes(c.model.weight_bytes)},
        {"threads", 7, fmt::format("{}", t.n_threads)},
        {"kv", 12, kv},
        {"type", 4, std::string(name(t.session.kv_type))},
        {"test", 18, t.label()},
        {"t/s", 17, fmt::format("{:.2f} ± {:.2f}", mean(rates), stddev(rates))},
        {"GFLOP/s", 7, number(gflops(r), 1)},
        {"GB/s", 6, number(r.bytes_read > 0 ? r.bytes_read / mean(r.seconds) / 1e9 : NAN, 1)},
        {"pack %", 6, share(parts.pack)},
        {"linear %", 8, share(parts.linear)},
        {"attn %", 6, share(parts.attention)},
        {"score %", 7, share(parts.score)},
        {"gather %", 8, share(parts.gather)},
        {"KV full", 10, format_bytes(r.kv_bytes_full)},
        {"KV peak", 10, format_bytes(r.kv_bytes_peak)},
        {"KV now", 10, format_bytes(r.kv_bytes)},
        {"peak RSS", 10, format_bytes(r.peak_rss)},
    };
  }

  bool first_ = true;
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
  return std::make_unique<MarkdownPrinter>();
}

}  // namespace snapkv::cli
