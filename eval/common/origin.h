// SPDX-License-Identifier: MIT
// Where results come from: the build, the processor and the time. Used by the records of
// `snapkv eval` (runner.cpp) and the reports of `snapkv bench`.
#pragma once

#include <string>

namespace snapkv::eval {

/// Git commit of the sources that this program was built from, with "-dirty" where they had been
/// changed; "unknown" when it was built outside of Git.
std::string build_commit();
/// "AMD EPYC": of the first processor, as llama-bench has it; "" where the system doesn't say.
std::string cpu_name();
/// "2026-01-31T12:00:00Z"
std::string utc_now();

}  // namespace snapkv::eval
