// SPDX-License-Identifier: MIT
// Prints the results of `snapkv bench` test by test, as a Markdown table, CSV, JSON or JSON lines.
// llama-bench's field names come first and ours after them; docs/bench.md explains them.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/bench/check.h"
#include "cli/bench/run.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// The facts that all results of a run share.
struct BenchContext {
  ModelInfo model;
  std::string backend;  // with the current number of threads
  std::string weights;  // value of --weights
  BenchCheck check;
};

/// Returns the fields of a result, as in the formats json and jsonl.
nlohmann::ordered_json to_json(const BenchContext& context, const BenchResult& result);

/// Writes results to stdout.
class BenchPrinter {
 public:
  virtual ~BenchPrinter() = default;
  virtual void add(const BenchContext& context, const BenchResult& result) = 0;
  /// Ends the output after the last result.
  virtual void finish() = 0;

  /// "md", "csv", "json" or "jsonl"
  static std::unique_ptr<BenchPrinter> make(const std::string& format);
};

}  // namespace snapkv::cli
