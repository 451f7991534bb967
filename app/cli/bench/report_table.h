// SPDX-License-Identifier: MIT
// The Markdown table of `snapkv bench`. Called by bench/report.cpp.
#pragma once

#include <memory>

#include "cli/bench/report.h"

namespace snapkv::cli {

/// The whole table where it is read by a program or fits into `most_columns`; on a terminal that is
/// too narrow, the columns that matter most, so that no line breaks.
std::unique_ptr<BenchPrinter> make_table_printer(int most_columns);

}  // namespace snapkv::cli
