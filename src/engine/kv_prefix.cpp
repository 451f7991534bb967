// SPDX-License-Identifier: MIT
// KvPrefix, in memory and in files (docs/session-file.md has the layout).
#include "engine/kv_prefix.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/stop_check.h"
#include "engine/memory_plan.h"
#include "engine/option_range.h"

namespace snapkv {
namespace {

/// The blocks before those of the layers: head, tokens.
constexpr size_t kPrefixBlocks = 2;

SavedPrefix read_prefix_file(const CacheFile& file) {
  SavedPrefix saved;
  static_cast<SavedCache&>(saved) = read_head(file);
  file.expect(1, "tokens");
  const auto tokens = file.plain(1);
  if (tokens.size() != saved.n_past * sizeof(int32_t)) {
    fail(ErrorCode::kBadModel, "'{}': {} bytes are not those of {} tokens", file.path(),
         tokens.size(), saved.n_past);
  }
  saved.tokens.resize(saved.n_past);
  std::memcpy(saved.tokens.data(), tokens.data(), tokens.size());
  return saved;
}

}  // namespace

KvPrefix::KvPrefix(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KvPrefix::~KvPrefix() = default;

std::span<const int32_t> KvPrefix::tokens() const { return impl_->tokens; }
size_t KvPrefix::bytes() const {
  const ModelInfo& info = impl_->model->info();
  return kv_row_bytes(info, impl_->type) * info.n_layer * impl_->tokens.size();
}

size_t KvPrefix::decoded_bytes() const {
  const bool has_frames = impl_->file && impl_->file->blocks.block(kPrefixBlocks).is_frame != 0;
  return has_frames ? bytes() / impl_->model->info().n_layer : 0;
}

size_t KvPrefix::bytes_for(const ModelInfo& info, const SessionOptions& options, int64_t n_tokens) {
  return kv_row_bytes(info, scratch_dtype(options.kv_type)) * info.n_layer * n_tokens;
}

DType stored_kv_type(const ModelInfo& info) {
  return info.head_dim % block_size(DType::q8_0) == 0 ? DType::q8_0 : DType::f16;
}

void check_prefix(const KvPrefix& prefix, int64_t n, const Session::Impl& session,
                  std::span<const int32_t> tokens) {
  const KvPrefix::Impl& rows = prefix.impl();
  const int64_t n_tokens = std::ssize(tokens);
  require_range("n_from_prefix", n, 1, std::ssize(rows.tokens));
  if (session.n_past > 0) {
    fail(ErrorCode::kUsage, "a prefix is for a session that has read nothing, this one has read {}",
         session.n_past);
  }
  if (rows.model != session.model) fail(ErrorCode::kUsage, "the prefix is of another model");
  if (rows.file == nullptr && rows.type != scratch_dtype(session.options.kv_type)) {
    fail(ErrorCode::kUsage, "the prefix has rows of {}, a session with {} {} needs {}",
         name(rows.type), OptionName("kv_type"), name(session.options.kv_type),
         name(scratch_dtype(session.options.kv_type)));
  }
  if (!session.architecture().spec().rotate_alike(rows.n_ctx, session.n_ctx)) {
    fail(ErrorCode::kUsage,
         "the prefix was read with {} {} and the session has {}: the model rotates keys of long "
         "contexts otherwise",
         OptionName("n_ctx"), rows.n_ctx, session.n_ctx);
  }
  if (session.policy->info().observes) {
    fail(ErrorCode::kUsage, "policy {} observes every query of a prompt: it can't use a prefix",
         session.policy->info().name);
  }
  const int64_t window_size = std::max(session.policy->window_size(), 1);
  if (n_tokens - n < window_size) {
    fail(ErrorCode::kUsage,
         "n_from_prefix {} leaves {} of {} tokens to read, the policy's window needs {}", n,
         n_tokens - n, n_tokens, window_size);
  }
  if (!std::equal(rows.tokens.begin(), rows.tokens.begin() + n, tokens.begin())) {
    fail(ErrorCode::kUsage, "the prompt does not begin with the {} tokens of the prefix", n);
  }
}

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
  Buffer memory;
  const SavedState saved =
      file->blocks.state(kPrefixBlocks + il, il, *rows, std::ssize(tokens), memory);
  rows->borrow(saved);
  for (const int32_t n : rows->n_rows()) {
    if (n == saved.n_tokens) continue;
    fail(ErrorCode::kBadModel, "{}: {} rows are not those of {} tokens", saved.name, n,
         saved.n_tokens);
  }
  use(*rows);
  file->map.check_unchanged("open it again when it is complete");
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
  write_head(out, {impl_->model->fingerprint(), info.name, std::string(notes), type, impl_->n_ctx,
                   std::ssize(impl_->tokens)});
  out.block("tokens", std::as_bytes(std::span(impl_->tokens)));
  KvMeter meter;
  const auto n = static_cast<int32_t>(std::ssize(impl_->tokens));
  for (int il = 0; il < info.n_layer; ++il) {
    auto converted =
        make_full_state(impl_->model->impl_->architecture->layer_spec(il).state, meter, type);
    converted->reserve(backend, n, n);
    impl_->with_layer(il, [&](const LayerState& rows) { converted->append(backend, rows); });
    out.layer_block(converted->kind(), il, converted->most_saved_bytes(n),
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
  check_model(impl->file->blocks, impl->file->saved, *model,
              kPrefixBlocks + model->info().n_layer);
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
