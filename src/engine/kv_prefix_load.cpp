// SPDX-License-Identifier: MIT
// KvPrefix::load(), and access to a prefix's layers, which may be in a file.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/stop_check.h"
#include "engine/kv_prefix.h"
#include "engine/zstd_frame.h"

namespace snapkv {
namespace {

/// A layer of a file, with its rows in `storage`.
KvLayer layer_of(const PrefixFile& file, KvMeter& meter, Buffer storage) {
  return KvLayer(meter, file.head_dim, file.saved.type, static_cast<int>(file.n_head_kv),
                 static_cast<int32_t>(file.saved.tokens.size()), std::move(storage));
}

void check_positions(const KvLayer& layer, const std::string& path, int il) {
  for (int h = 0; h < layer.n_head_kv(); ++h) {
    const int32_t* pos = layer.pos(h);
    for (int32_t i = 0; i < layer.n_kv(h); ++i) {
      if (pos[i] == i) continue;
      fail(ErrorCode::kBadModel, "'{}': layer {}, head {}: row {} has the position {}", path, il, h,
           i, pos[i]);
    }
  }
}

}  // namespace

void KvPrefix::Impl::with_layer(int il, const std::function<void(const KvLayer&)>& use) const {
  if (!file) return use(layers[il]);
  check_stop("reading the rows");
  const std::span<const std::byte> stored = file->content.layers[il];
  const auto check = [&](const KvLayer& layer) {
    std::call_once(file->checked[il], [&] { check_positions(layer, file->path, il); });
  };
  std::call_once(file->hashed[il], [&] {
    if (XXH3_64bits(stored.data(), stored.size()) == file->content.hashes[il]) return;
    fail(ErrorCode::kBadModel, "'{}': the checksum of layer {} is wrong: it is damaged", file->path,
         il);
  });
  if (!file->content.has_frames) {
    check(layers[il]);
    use(layers[il]);
  } else {
    KvMeter of_this;
    const KvLayer decoded = layer_of(file->content, of_this,
                                     decode_zstd_frame(stored, file->content.layer_bytes,
                                                       file->path, fmt::format("layer {}", il)));
    check(decoded);
    use(decoded);
  }
  file->map.check_unchanged("open it again when it is complete");
}

std::shared_ptr<const KvPrefix> KvPrefix::load(std::shared_ptr<const Model> model,
                                               const std::string& path) {
  if (model == nullptr) fail(ErrorCode::kUsage, "KvPrefix::load: the model is null");
  if (Impl::backend_of(*model).is_device()) {
    fail(ErrorCode::kUsage, "'{}': uncompressed rows in a file are for the CPU", path);
  }
  auto impl = std::make_unique<Impl>();
  auto file = std::make_unique<Impl::File>(path);
  const PrefixFile& content = file->content;
  const ModelInfo& info = model->info();
  if (content.saved.fingerprint != model->fingerprint()) {
    fail(ErrorCode::kUsage,
         "'{}': saved with another model, \"{}\" of fingerprint {:016x}; this one, {}, has {:016x}",
         path, content.saved.model, content.saved.fingerprint, info.path, model->fingerprint());
  }
  if (content.n_layer != info.n_layer || content.n_head_kv != info.n_head_kv ||
      content.head_dim != info.head_dim) {
    fail(ErrorCode::kBadModel, "'{}': its sizes are not those of the model that it names", path);
  }
  impl->n_ctx = content.saved.n_ctx;
  for (const std::span<const std::byte> stored : content.layers) {
    if (content.has_frames) break;
    // the layer never writes to it
    auto* data = const_cast<std::byte*>(stored.data());
    impl->layers.push_back(layer_of(content, impl->meter, Buffer(data, stored.size(), nullptr)));
  }
  impl->tokens = content.saved.tokens;
  impl->model = std::move(model);
  impl->file = std::move(file);
  return std::make_shared<KvPrefix>(std::move(impl));
}

}  // namespace snapkv
