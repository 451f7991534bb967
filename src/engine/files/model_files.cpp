// SPDX-License-Identifier: MIT
// model_files() and check_cache_path(): include/snapkv/model_files.h.
#include "snapkv/model_files.h"

#include <sys/stat.h>

#include "base/error.h"
#include "engine/files/cache_file.h"
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
  if (!holds_bytes || is_saved_cache(path)) return;
  fail(ErrorCode::kUsage,
       "'{}' exists and is not a saved cache: only those are replaced, choose another name",
       path);
}

}  // namespace snapkv
