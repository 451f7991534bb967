// SPDX-License-Identifier: MIT
#include "eval/common/origin.h"

#include <ctime>
#include <fstream>

namespace snapkv::eval {

extern const char* const kBuildCommit;  // written at build time by cmake/write_commit.cmake

std::string build_commit() { return kBuildCommit; }

// From the line "model name : AMD EPYC".
std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace snapkv::eval
