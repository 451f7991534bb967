// SPDX-License-Identifier: MIT
// The Markdown table of `snapkv bench`.
#pragma once

#include <memory>

#include "cli/bench/report.h"

namespace snapkv::cli {

/// Makes a printer of the whole table when a program reads it or it fits into `most_columns`; on a
/// narrower terminal, of the most important columns only, so that no line wraps.
std::unique_ptr<BenchPrinter> make_table_printer(int most_columns);

}  // namespace snapkv::cli
