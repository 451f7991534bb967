// SPDX-License-Identifier: MIT
// Where results come from: the build, the processor and the time.
#pragma once

#include <string>

namespace snapkv::eval {

/// The Git commit of the sources that this program was built from, with "-dirty" if they had been
/// changed; "unknown" if it was built outside Git.
std::string build_commit();
/// The first processor's name as llama-bench reports it, "AMD EPYC"; "" if the system does not
/// tell.
std::string cpu_name();
/// "2026-01-31T12:00:00Z"
std::string utc_now();

}  // namespace snapkv::eval
