// SPDX-License-Identifier: MIT
// KvPrefix in files (docs/session-file.md has the layout): save(), load(), and access to the layers.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/stop_check.h"
#include "engine/kv_prefix.h"
#include "engine/memory_plan.h"

namespace snapkv {
namespace {

/// The blocks before those of the layers: head, tokens.
constexpr size_t kPrefixBlocks = 2;

SavedPrefix read_prefix_file(const CacheFile& file) {
  const CacheHead head = read_head(file);
  SavedPrefix saved;
  static_cast<SavedCache&>(saved) = head;
  saved.n_ctx = head.n_ctx;
  saved.type = head.type;
  file.expect(1, "tokens");
  const auto tokens = file.plain(1);
  if (tokens.size() != head.n_tokens * sizeof(int32_t)) {
    fail(ErrorCode::kBadModel, "'{}': {} bytes are not those of {} tokens", file.path(),
         tokens.size(), head.n_tokens);
  }
  saved.tokens.resize(head.n_tokens);
  std::memcpy(saved.tokens.data(), tokens.data(), tokens.size());
  return saved;
}

}  // namespace

KvPrefix::Impl::File::File(const std::string& path)
    : map(path),
      blocks(map.bytes(), path, CacheContents::all_rows),
      saved(read_prefix_file(blocks)) {}

void KvPrefix::Impl::with_layer(int il, const std::function<void(const LayerState&)>& use) const {
  if (!file) return use(*layers[il]);
  check_stop("reading the rows");
  KvMeter of_this;
  const auto rows =
      make_full_state(model->impl_->architecture->layer_spec(il).state, of_this, type);
  const size_t block = kPrefixBlocks + il;
  const auto n_tokens = std::ssize(tokens);
  file->blocks.expect(block, rows->kind(), il);
  Buffer memory;
  const auto bytes = file->blocks.content(block, rows->most_saved_bytes(n_tokens), memory);
  const std::string name = fmt::format("'{}': layer {}", file->blocks.path(), il);
  rows->borrow({bytes, n_tokens, name});
  for (const int32_t n : rows->n_rows()) {
    if (n == n_tokens) continue;
    fail(ErrorCode::kBadModel, "{}: {} rows are not those of {} tokens", name, n, n_tokens);
  }
  use(*rows);
  file->map.check_unchanged("open it again when it is complete");
}

size_t KvPrefix::Impl::bytes() const {
  if (!file) return meter.now;
  size_t bytes = 0;
  for (size_t i = kPrefixBlocks; i < file->blocks.n_blocks(); ++i) {
    bytes += file->blocks.block(i).bytes;
  }
  return bytes;
}

size_t KvPrefix::Impl::decoded_bytes() const {
  size_t most = 0;
  for (size_t i = kPrefixBlocks; file && i < file->blocks.n_blocks(); ++i) {
    const CacheBlock& block = file->blocks.block(i);
    if (block.is_frame != 0) most = std::max<size_t>(most, block.bytes);
  }
  return most;
}

void KvPrefix::save(const std::string& path, DType type, std::string_view notes,
                    int zstd_level) const {
  const ModelInfo& info = impl_->model->info();
  validate_kv_type(type, info.head_dim);
  Backend& backend = Impl::backend_of(*impl_->model);
  if (backend.is_device()) {
    fail(ErrorCode::kUsage, "rows in a GPU's memory can't be saved: that is for the CPU");
  }
  CacheFileWriter out(path, CacheContents::all_rows, zstd_level);
  write_head(out, {{impl_->model->fingerprint(), info.name, std::string(notes)}, type,
                   impl_->n_ctx, std::ssize(impl_->tokens)});
  out.block("tokens", std::as_bytes(std::span(impl_->tokens)));
  KvMeter meter;
  const auto n = static_cast<int32_t>(std::ssize(impl_->tokens));
  for (int il = 0; il < info.n_layer; ++il) {
    auto converted =
        make_full_state(impl_->model->impl_->architecture->layer_spec(il).state, meter, type);
    converted->reserve(backend, n, n);
    impl_->with_layer(il, [&](const LayerState& rows) { converted->append(backend, rows); });
    out.layer_block(converted->kind(), il,
                    [&](const ByteSink& sink) { converted->save(backend, sink); });
  }
  out.finish();
}

std::shared_ptr<const KvPrefix> KvPrefix::load(std::shared_ptr<const Model> model,
                                               const std::string& path) {
  if (model == nullptr) fail(ErrorCode::kUsage, "KvPrefix::load: the model is null");
  if (Impl::backend_of(*model).is_device()) {
    fail(ErrorCode::kUsage, "'{}': uncompressed rows in a file are for the CPU", path);
  }
  auto impl = std::make_unique<Impl>();
  impl->file = std::make_unique<Impl::File>(path);
  check_model(impl->file->blocks, impl->file->saved, *model, kPrefixBlocks, 1);
  impl->n_ctx = impl->file->saved.n_ctx;
  impl->type = impl->file->saved.type;
  impl->tokens = impl->file->saved.tokens;
  impl->model = std::move(model);
  return std::make_shared<KvPrefix>(std::move(impl));
}

bool is_prefix_file(const std::string& path) {
  return cache_contents(path) == CacheContents::all_rows;
}

SavedPrefix describe_prefix(const std::string& path) {
  const MmapFile map(path);
  return read_prefix_file(CacheFile(map.bytes(), path, CacheContents::all_rows));
}

}  // namespace snapkv
