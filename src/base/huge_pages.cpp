// SPDX-License-Identifier: MIT
#include "base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace snapkv {
namespace {

size_t read_size() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  std::string enabled;  // "always [madvise] never"
  std::getline(std::ifstream(folder + "enabled") >> std::ws, enabled);
  if (enabled.empty() || enabled.find("[never]") != std::string::npos) return 0;
  size_t size = 0;
  std::ifstream(folder + "hpage_pmd_size") >> size;
  return size;
}

}  // namespace

size_t huge_page_size() {
  static const size_t size = read_size();
  return size;
}

void prefer_huge_pages(void* data, size_t bytes) {
  const size_t page = huge_page_size();
  if (page == 0) return;
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (first + page - 1) / page * page, end = (first + bytes) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace snapkv
