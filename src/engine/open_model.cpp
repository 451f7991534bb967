// SPDX-License-Identifier: MIT
#include "engine/open_model.h"

#include "base/error.h"
#include "huggingface/folder.h"

namespace snapkv {

GgufFile open_model(const std::string& path, const ReadOptions& options) {
  if (huggingface::is_folder(path)) {
    return huggingface::to_model(huggingface::open_folder(path, options));
  }
  if (path.ends_with(".safetensors")) {
    fail(ErrorCode::kUsage,
         "'{}' holds weights only: name the folder that it is in, with config.json and "
         "tokenizer.json",
         path);
  }
  return GgufFile::open(path, options);
}

}  // namespace snapkv
