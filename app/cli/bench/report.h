// SPDX-License-Identifier: MIT
// Results of `snapkv bench` as a Markdown table, CSV, JSON or JSON lines, printed test by test.
// llama-bench's field names come first, our own behind them; docs/performance.md explains them.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/bench/check.h"
#include "cli/bench/run.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// What all results of a run share.
struct BenchContext {
  ModelInfo model;
  std::string backend;  // of the threads at hand
  std::string weights;  // value of --weights
  BenchCheck check;
};

/// The fields of a result, as json and jsonl have them.
nlohmann::ordered_json to_json(const BenchContext& context, const BenchResult& result);

/// Writes to stdout.
class BenchPrinter {
 public:
  virtual ~BenchPrinter() = default;
  virtual void add(const BenchContext& context, const BenchResult& result) = 0;
  /// After the last result.
  virtual void finish() = 0;

  /// "md", "csv", "json" or "jsonl"
  static std::unique_ptr<BenchPrinter> make(const std::string& format);
};

}  // namespace snapkv::cli
