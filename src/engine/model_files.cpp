// SPDX-License-Identifier: MIT
// model_files() and check_cache_path(): include/snapkv/model_files.h.
#include "snapkv/model_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "engine/cache_file.h"
#include "format/gguf_part.h"
#include "huggingface/folder.h"

namespace snapkv {

std::vector<std::string> model_files(const std::string& path) {
  return huggingface::is_folder(path) ? huggingface::files_of(path) : gguf_files(path);
}

void check_cache_path(const std::string& path) {
  struct stat info = {};
  const bool holds_bytes =
      ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  if (!holds_bytes) return;
  char magic[sizeof(kCacheMagic)] = {};
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::kRuntime, "can't read '{}': {}", path, std::strerror(errno));
  in.read(magic, sizeof(magic));
  if (begins_as_cache({magic, sizeof(magic)})) return;
  fail(ErrorCode::kUsage,
       "'{}' is there and is no saved cache, which alone is replaced by another: name another file",
       path);
}

}  // namespace snapkv
