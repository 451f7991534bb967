// SPDX-License-Identifier: MIT
#include "engine/files/open_model.h"

#include <utility>

#include "base/error.h"
#include "huggingface/folder.h"
#include "model/rotation.h"

namespace snapkv {

GgufFile open_model(const std::string& path, const ReadOptions& options) {
  if (huggingface::is_folder(path)) {
    return huggingface::to_model(huggingface::open_folder(path, options), options);
  }
  if (path.ends_with(".safetensors")) {
    fail(ErrorCode::kUsage,
         "'{}' holds weights only: name the folder that it is in, with config.json and "
         "tokenizer.json",
         path);
  }
  return GgufFile::open(path, options);
}

GgufFile open_model(const ModelOptions& model, const ReadOptions& options) {
  GgufFile file = open_model(model.path, options);
  const bool is_yarn =
      model.rope_scaling == RopeScaling::yarn || model.yarn_factor > 0 || model.yarn_orig_ctx > 0;
  if (model.rope_scaling == RopeScaling::none) {
    if (model.yarn_factor > 0 || model.yarn_orig_ctx > 0) {
      fail(ErrorCode::kUsage,
           "yarn_factor and yarn_orig_ctx have no meaning if rope_scaling is none");
    }
    remove_position_scaling(file);
  } else if (is_yarn) {
    scale_positions_by_yarn(file, model.yarn_factor, model.yarn_orig_ctx);
  }
  return file;
}

ModelOptions draft_model_options(const ModelOptions& model) {
  ModelOptions options = model;
  options.path = std::exchange(options.draft_model, {});
  options.progress = {};
  options.rope_scaling = RopeScaling::automatic;
  options.yarn_factor = 0;
  options.yarn_orig_ctx = 0;
  return options;
}

}  // namespace snapkv
