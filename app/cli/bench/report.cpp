// SPDX-License-Identifier: MIT
#include "cli/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/bench/report_table.h"
#include "cli/bench/report_values.h"
#include "cli/common/terminal.h"
#include "eval/common/origin.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

double mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double compression(const BenchResult& r) {
  return static_cast<double>(r.kv_bytes_full) / static_cast<double>(r.kv_bytes_used);
}

double select_percent(const PrefillParts& p) { return 100 * (p.score + p.gather) / p.total; }

// Adds those of llama-bench's fields that apply here.
void add_llama_fields(Json& json, const BenchContext& c, const BenchResult& r) {
  const BenchTest& t = r.test;
  const std::vector<double> rates = tokens_per_second(r);
  std::vector<double> ns;
  for (const double s : r.seconds) ns.push_back(std::round(s * 1e9));
  json["build_commit"] = eval::build_commit();
  json["build_number"] = 0;
  json["cpu_info"] = eval::cpu_name();
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

// Adds the work of one repetition and the limits of the machine; null where they are not measured.
void add_limits(Json& json, const BenchResult& r) {
  json["work_gflop"] = r.work.operations() / 1e9;
  json["work_gb"] = r.work.bytes / 1e9;
  const auto field = [&](const char* key, auto value_of) {
    json[key] = r.limits ? Json(value_of(*r.limits)) : Json();
  };
  const auto rate = [](double per_second) {
    return per_second > 0 ? Json(per_second / 1e9) : Json();
  };
  field("percent_of_limit", [&](const auto& m) { return percent_of_limit(r, m); });
  field("limit",
        [&](const auto& m) { return least_time(r.work, m).by_memory() ? "memory" : "compute"; });
  field("limit_s", [&](const auto& m) { return least_time(r.work, m).seconds(); });
  field("linear_products", [&](const auto&) { return name(r.work.linear_products); });
  field("attention_products", [&](const auto&) { return name(r.work.attention_products); });
  field("machine_read_gbps", [&](const auto& m) { return rate(m.read); });
  field("machine_f32_gflops", [&](const auto& m) { return rate(m.f32); });
  field("machine_bf16_gflops", [&](const auto& m) { return rate(m.bf16); });
  field("machine_int8_gops", [&](const auto& m) { return rate(m.int8); });
}

// Adds our own fields; null where a field does not apply.
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
  json["n_step"] = t.n_step;
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
  json["linear_gflops"] = r.parts ? rate(r.work.linear, r.parts->linear) : Json();
  json["attention_gflops"] = r.parts ? rate(r.work.attention, r.parts->attention) : Json();
  json["gbps"] = r.parts ? Json() : rate(r.work.bytes, mean(r.seconds));
  add_limits(json, r);
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

// Quotes every value; lists (the samples) have no column, as in llama-bench.
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
  return make_table_printer(watched ? terminal_width() : std::numeric_limits<int>::max());
}

}  // namespace snapkv::cli
