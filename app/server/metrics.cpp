// SPDX-License-Identifier: MIT
#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>
#include <vector>

namespace snapkv::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

// Upper bounds of the histograms' buckets, in seconds.
const prometheus::Histogram::BucketBoundaries kFirstToken = {
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000};
const prometheus::Histogram::BucketBoundaries kPerToken = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

class Families {
 public:
  void counter(const char* name, const char* help, double value) {
    prometheus::ClientMetric metric;
    metric.counter.value = value;
    add(name, help, MetricType::Counter, {metric});
  }
  void gauge(const char* name, const char* help, double value) {
    prometheus::ClientMetric metric;
    metric.gauge.value = value;
    add(name, help, MetricType::Gauge, {metric});
  }
  /// Adds a family with one metric for each value of the label `state`.
  void gauges(const char* name, const char* help,
              const std::vector<std::pair<const char*, double>>& states) {
    std::vector<prometheus::ClientMetric> metrics;
    for (const auto& [state, value] : states) {
      prometheus::ClientMetric metric;
      metric.label = {{"state", state}};
      metric.gauge.value = value;
      metrics.push_back(metric);
    }
    add(name, help, MetricType::Gauge, metrics);
  }
  void histogram(const char* name, const char* help, const prometheus::Histogram& histogram) {
    add(name, help, MetricType::Histogram, {histogram.Collect()});
  }
  const std::vector<MetricFamily>& all() const { return all_; }

 private:
  void add(const char* name, const char* help, MetricType type,
           std::vector<prometheus::ClientMetric> metrics) {
    MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = type;
    family.metric = std::move(metrics);
    all_.push_back(std::move(family));
  }
  std::vector<MetricFamily> all_;
};

double number(int64_t n) { return static_cast<double>(n); }

void add_counters(Families& families, const SchedulerStats& s) {
  families.counter("snapkv_requests_total", "Requests that were taken", number(s.n_requests));
  families.counter("snapkv_requests_refused_total", "Requests that were refused",
                   number(s.n_refused));
  families.counter("snapkv_requests_cancelled_total", "Requests whose client went",
                   number(s.n_cancelled));
  families.counter("snapkv_requests_failed_total", "Requests that ended with an error",
                   number(s.n_failed));
  families.counter("snapkv_prompt_tokens_total", "Prompt tokens read, reused ones not included",
                   number(s.n_prompt_tokens));
  families.counter("snapkv_reused_tokens_total", "Prompt tokens that were there already",
                   number(s.n_reused_tokens));
  families.counter("snapkv_generated_tokens_total", "Tokens of answers",
                   number(s.n_generated_tokens));
  families.counter("snapkv_drafted_tokens_total", "Tokens that were guessed and checked",
                   number(s.n_drafted_tokens));
  families.counter("snapkv_accepted_tokens_total", "Guessed tokens that were right",
                   number(s.n_accepted_tokens));
  families.counter("snapkv_evicted_tokens_total",
                   "Rows of prompts that policies dropped, mean over layers and heads",
                   number(s.n_evicted_tokens));
  families.counter("snapkv_decode_steps_total", "Steps of all answers together",
                   number(s.n_decode_steps));
  families.counter("snapkv_prefill_seconds_total", "Time spent reading prompts", s.prefill_seconds);
  families.counter("snapkv_decode_seconds_total", "Time spent writing answers", s.decode_seconds);
  families.counter("snapkv_compress_seconds_total", "Time spent choosing what is kept",
                   s.compress_seconds);
}

void add_gauges(Families& families, const SchedulerStats& s) {
  families.gauge("snapkv_longest_token_gap_seconds", "Longest time between two tokens of an answer",
                 s.longest_gap_seconds);
  families.gauges("snapkv_sessions", "Sessions by state",
                  {{"waiting", s.n_waiting},
                   {"reading", s.n_reading},
                   {"answering", s.n_answering},
                   {"writing", s.n_writing},
                   {"kept", s.n_kept}});
  families.gauge("snapkv_prefixes", "Beginnings of prompts that are kept", s.n_prefixes);
  families.gauge("snapkv_kv_limit_bytes", "Bytes that caches may take",
                 static_cast<double>(s.bytes_limit));
  families.gauges("snapkv_kv_bytes", "Bytes of caches by state",
                  {{"running", static_cast<double>(s.bytes_running)},
                   {"kept", static_cast<double>(s.bytes_kept)},
                   {"prefixes", static_cast<double>(s.bytes_prefixes)}});
}

}  // namespace

Metrics::Metrics() : first_token_(kFirstToken), per_token_(kPerToken) {}

std::string Metrics::text(const SchedulerStats& stats) const {
  Families families;
  add_counters(families, stats);
  add_gauges(families, stats);
  families.histogram("snapkv_first_token_seconds",
                     "Time from a request to the first token of its answer", first_token_);
  families.histogram("snapkv_token_seconds", "Time between two tokens of an answer", per_token_);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families.all());
  return out.str();
}

}  // namespace snapkv::server
