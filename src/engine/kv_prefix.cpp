// SPDX-License-Identifier: MIT
// KvPrefix, in memory and in files (docs/session-file.md has the layout).
#include "engine/kv_prefix.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/stop_check.h"
#include "engine/memory_plan.h"
#include "engine/option_range.h"

namespace snapkv {
namespace {

/// The blocks before those of the layers: head, tokens.
constexpr size_t kPrefixBlocks = 2;
/// Rows are shared if at least this part of them is used, else copied.
constexpr double kLeastShared = 7.0 / 8;

size_t rows_bytes(const KvPrefix::Impl& prefix, int64_t n_tokens) {
  const ModelInfo& info = prefix.model->info();
  return kv_row_bytes(info, prefix.type) * info.n_layer * n_tokens;
}

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
  if (impl_->file) return rows_bytes(*impl_, std::ssize(impl_->tokens));
  const KvPrefix* const only_this = this;
  return bytes({&only_this, 1});
}

size_t KvPrefix::bytes(std::span<const KvPrefix* const> prefixes) {
  size_t total = 0;
  std::set<const PrefixRows*> counted;
  for (const KvPrefix* prefix : prefixes) {
    const Impl& impl = *prefix->impl_;
    if (impl.file) total += rows_bytes(impl, std::ssize(impl.tokens));
    for (const Impl::Part& part : impl.parts) {
      if (counted.insert(part.rows.get()).second) total += rows_bytes(impl, part.rows->n_tokens);
    }
  }
  return total;
}

KvPrefix::Shared KvPrefix::shared(int64_t n_tokens) const {
  Shared shared;
  for (const Impl::Part& part : impl_->shared_parts(n_tokens)) {
    shared.n_tokens += part.n_tokens;
    shared.bytes += rows_bytes(*impl_, part.rows->n_tokens);
  }
  return shared;
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

void KvPrefix::Impl::append_to(LayerState& layer, int il, int64_t begin, int64_t end) const {
  Backend& backend = backend_of(*model);
  const StateShape& shape = layer_spec(*model, il).state;
  const auto append = [&](const LayerState& rows, int64_t first, int64_t n) {
    layer.append(backend, rows, std::vector<int32_t>(shape.n_head, static_cast<int32_t>(first)), n);
  };
  if (file) {
    return file->with_layer(shape, il,
                            [&](const LayerState& rows) { append(rows, begin, end - begin); });
  }
  int64_t first = 0;  // of the part
  for (const Part& part : parts) {
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(end, first + part.n_tokens);
    if (from < to) append(*part.rows->layers[il], from - first, to - from);
    first += part.n_tokens;
  }
}

std::vector<KvPrefix::Impl::Part> KvPrefix::Impl::shared_parts(int64_t n_tokens) const {
  std::vector<Part> shared;
  for (const Part& part : parts) {
    const int64_t n = std::min(part.n_tokens, n_tokens);
    if (static_cast<double>(n) < kLeastShared * static_cast<double>(part.rows->n_tokens)) break;
    shared.push_back({part.rows, n});
    n_tokens -= n;
  }
  return shared;
}

void KvPrefix::Impl::File::with_layer(const StateShape& shape, int il,
                                      const std::function<void(const LayerState&)>& use) const {
  check_stop("reading the rows");
  KvMeter of_this;
  const auto rows = make_full_state(shape, of_this, saved.type);
  Buffer memory;
  const SavedState state = blocks.state(kPrefixBlocks + il, il, *rows, saved.n_past, memory);
  rows->borrow(state);
  for (const int32_t n : rows->n_rows()) {
    if (n == state.n_tokens) continue;
    fail(ErrorCode::kBadModel, "{}: {} rows are not those of {} tokens", state.name, n,
         state.n_tokens);
  }
  use(*rows);
  map.check_unchanged("open it again when it is complete");
}

PrefixMaker::PrefixMaker(const Session::Impl& session, std::span<const int32_t> tokens,
                         const KvPrefix* old, int64_t n_old)
    : backend_(session.backend()),
      old_(old),
      making_(std::make_unique<KvPrefix::Impl>()),
      own_(std::make_shared<PrefixRows>()) {
  making_->model = session.model;
  making_->n_ctx = session.n_ctx;
  making_->type = scratch_dtype(session.options.kv_type);
  making_->tokens = {tokens.begin(), tokens.end()};
  if (old != nullptr) making_->parts = old->impl().shared_parts(n_old);
  for (const KvPrefix::Impl::Part& part : making_->parts) n_shared_ += part.n_tokens;
  if (n_shared_ < n_old) {
    copied_ = std::make_shared<PrefixRows>();
    copied_->n_tokens = n_old - n_shared_;
  }
  own_->n_tokens = std::ssize(tokens) - n_old;
}

/// An empty layer with room for all rows.
LayerState& PrefixMaker::add_layer(PrefixRows& rows, int il) const {
  SNAPKV_CHECK(std::ssize(rows.layers) == il);
  const StateShape& shape = KvPrefix::Impl::layer_spec(*making_->model, il).state;
  rows.layers.push_back(make_full_state(shape, rows.meter, making_->type));
  const auto n = static_cast<int32_t>(rows.n_tokens);
  rows.layers.back()->reserve(backend_, n, n);
  return *rows.layers.back();
}

void PrefixMaker::keep_layer(int il, const LayerState& computed) {
  if (copied_) {
    old_->impl().append_to(add_layer(*copied_, il), il, n_shared_, n_shared_ + copied_->n_tokens);
  }
  std::vector<int32_t> first = computed.n_rows();
  for (int32_t& row : first) row -= static_cast<int32_t>(own_->n_tokens);
  add_layer(*own_, il).append(backend_, computed, first, own_->n_tokens);
}

void PrefixMaker::add_part(std::shared_ptr<PrefixRows> rows) {
  const int64_t n = rows->n_tokens;
  making_->parts.push_back({std::move(rows), n});
}

std::shared_ptr<const KvPrefix> PrefixMaker::finish() {
  if (copied_) add_part(std::move(copied_));
  add_part(std::move(own_));
  return std::make_shared<KvPrefix>(std::move(making_));
}

void KvPrefix::save(const std::string& path, DType type, std::string_view notes, int zstd_level,
                    int64_t n_tokens) const {
  const ModelInfo& info = impl_->model->info();
  validate_kv_type(type, info.head_dim);
  require_range("n_tokens", n_tokens, 0, std::ssize(impl_->tokens));
  const auto tokens =
      std::span(impl_->tokens).first(n_tokens > 0 ? n_tokens : impl_->tokens.size());
  Backend& backend = Impl::backend_of(*impl_->model);
  if (backend.is_device()) {
    fail(ErrorCode::kUsage, "rows in a GPU's memory can't be saved: that is for the CPU");
  }
  CacheFileWriter out(path, CacheContents::all_rows, zstd_level);
  write_head(out, {impl_->model->fingerprint(), model_label(info), std::string(notes), type,
                   impl_->n_ctx, std::ssize(tokens)});
  out.block("tokens", std::as_bytes(tokens));
  KvMeter meter;
  const auto n = static_cast<int32_t>(std::ssize(tokens));
  for (int il = 0; il < info.n_layer; ++il) {
    auto converted = make_full_state(Impl::layer_spec(*impl_->model, il).state, meter, type);
    converted->reserve(backend, n, n);
    impl_->append_to(*converted, il, 0, n);
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
  check_model(impl->file->blocks, impl->file->saved, *model, kPrefixBlocks + model->info().n_layer);
  impl->n_ctx = impl->file->saved.n_ctx;
  impl->type = impl->file->saved.type;
  impl->tokens = impl->file->saved.tokens;
  impl->model = std::move(model);
  return std::make_shared<KvPrefix>(std::move(impl));
}

bool is_prefix_file(const std::string& path) {
  return cache_contents(path) == CacheContents::all_rows;
}

bool is_cache_file(const std::string& path) { return is_saved_cache(path); }

SavedPrefix describe_prefix(const std::string& path) {
  const MmapFile map(path);
  return read_prefix_file(CacheFile(map.bytes(), path, CacheContents::all_rows));
}

}  // namespace snapkv
