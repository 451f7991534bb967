// SPDX-License-Identifier: MIT
// The fuzz target for files of evaluations, for the fuzzer and the replay.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// Reads a file of records and makes the tables of a task, or scores a row of LongBench. The first
/// byte selects which: s (needle and ruler), t (turns), f (fidelity), o (overlap), b (LongBench's
/// table), r (a row of LongBench; the next byte selects the task). "@0", "@1", ... in a record
/// stand for the keys that the tables look for. Returns the tables or the score; empty if an Error
/// was thrown. Any other exception is passed on.
std::string use_hostile_records(std::string_view bytes);

}  // namespace snapkv::test
