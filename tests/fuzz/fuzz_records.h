// SPDX-License-Identifier: MIT
// What the fuzz target of evaluations' files and its replay share.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// Reads a file of records and makes the tables of a task, or scores a row of LongBench. The first
/// byte says which: s (needle and ruler), t (turns), f (fidelity), o (overlap), b (LongBench's
/// table), r (a row of it; the byte after is the task). In a record "@0", "@1", ... stand for the
/// keys that the tables look for. Returns the tables, or what was scored; empty where an Error was
/// thrown. Anything but an Error is for the caller to see.
std::string use_hostile_records(std::string_view bytes);

}  // namespace snapkv::test
