// SPDX-License-Identifier: MIT
// KvPrefix, in memory and in files (docs/session-file.md has the layout).
#include "engine/prefill/kv_prefix.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/stop_check.h"
#include "engine/core/kv_types.h"
#include "engine/core/option_range.h"
#include "snapkv/lent_file.h"

namespace snapkv {
namespace {

/// The blocks before those of the layers: head, tokens.
constexpr size_t kPrefixBlocks = 2;
/// Rows are shared if at least this part of them is used, else copied.
constexpr double kLeastShared = 7.0 / 8;

/// Bytes of a mark in all layers that have one.
size_t mark_bytes(const ModelSpec& spec) {
  size_t bytes = 0;
  for (const LayerSpec& layer : spec.layers) bytes += layer.state.n_recurrent * sizeof(float);
  return bytes;
}

/// The fewest tokens between two marks, whose states must not take more than the rows of these. In
/// a model without rows they may take what rows of a model with 1.5 billion parameters would.
int64_t mark_distance(const ModelSpec& spec, DType type) {
  constexpr size_t kWithoutRows = 32 << 10;  // bytes of a token
  const size_t rows = spec.bytes_per_token(type), token = rows > 0 ? rows : kWithoutRows;
  return std::max<int64_t>(RecurrentState::kLeastMarkDistance, mark_bytes(spec) / token);
}

/// At most so many bytes have the rows and marks of n tokens.
size_t rows_bytes(const ModelInfo& info, DType type, int64_t n_tokens) {
  const ModelSpec& spec = *info.spec;
  const size_t rows = kv_bytes_per_token(info, type) * n_tokens;
  if (!spec.is_recurrent()) return rows;
  return rows + mark_bytes(spec) * (n_tokens / mark_distance(spec, type) + 5);
}
size_t rows_bytes(const KvPrefix::Impl& prefix, int64_t n_tokens) {
  return rows_bytes(prefix.model->info(), prefix.type, n_tokens);
}

SavedPrefix read_prefix_file(const CacheFile& file) {
  SavedPrefix saved;
  static_cast<SavedCache&>(saved) = read_head(file);
  file.expect(1, "tokens");
  const auto tokens = file.bytes(1);
  if (tokens.size() != saved.n_past * sizeof(int32_t)) {
    fail(ErrorCode::kBadModel, "'{}': {} bytes are not those of {} tokens", file.path(),
         tokens.size(), saved.n_past);
  }
  saved.tokens.resize(saved.n_past);
  std::memcpy(saved.tokens.data(), tokens.data(), tokens.size());
  return saved;
}

/// An empty state for what a prefix has of such a layer.
std::unique_ptr<LayerState> make_prefix_state(const StateShape& shape, KvMeter& meter, DType type) {
  if (shape.shared) return make_state(shape, meter, type);
  std::unique_ptr<RowState> rows;
  if (shape.has_rows()) rows = make_full_state(shape, meter, type);
  std::unique_ptr<RecurrentState> recurrent;
  if (shape.has_recurrent()) recurrent = std::make_unique<RecurrentState>(meter, shape);
  return join_states(std::move(rows), std::move(recurrent));
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
  std::set<const void*> counted;
  for (const KvPrefix* prefix : prefixes) {
    const Impl& impl = *prefix->impl_;
    if (impl.file) total += rows_bytes(impl, std::ssize(impl.tokens));
    for (const Impl::Part& part : impl.parts) {
      if (counted.insert(part.rows.get()).second) total += part.rows->meter.now;
    }
    for (const auto& state : impl.states) {
      if (state == nullptr) continue;
      for (const void* memory : state->mark_memory()) {
        if (counted.insert(memory).second) total += state->mark_bytes();
      }
    }
  }
  return total;
}

KvPrefix::Shared KvPrefix::shared(int64_t n_tokens) const {
  Shared shared;
  for (const Impl::Part& part : impl_->shared_parts(n_tokens)) {
    shared.n_tokens += part.n_tokens;
    shared.bytes += part.rows->meter.now;
  }
  if (!impl_->file && impl_->first_recurrent() >= 0) {
    const size_t bytes = mark_bytes(*impl_->model->info().spec);
    shared.bytes += impl_->shared_marks(n_tokens).size() * bytes;
  }
  return shared;
}

size_t KvPrefix::bytes_for(const ModelInfo& info, const SessionOptions& options, int64_t n_tokens) {
  return rows_bytes(info, scratch_dtype(options.kv_type), n_tokens);
}

DType stored_kv_type(const ModelInfo& info) {
  const bool fits = std::all_of(info.layers.begin(), info.layers.end(), [](const LayerInfo& layer) {
    return layer.head_dim % block_size(DType::q8_0) == 0;
  });
  return fits ? DType::q8_0 : DType::f16;
}

std::vector<int64_t> choose_marks(const Model& model, DType kv_type,
                                  std::span<const int32_t> tokens, int64_t n_old) {
  constexpr int64_t kMostDistance = 2048;  // of a long text without messages
  constexpr int64_t kWindow = 64;          // policies want to see a prompt's last queries
  const int64_t n = std::ssize(tokens);
  const int64_t least = mark_distance(*model.info().spec, scratch_dtype(kv_type));
  std::vector<int64_t> marks = {n};
  if (n - kWindow > n_old) marks.push_back(n - kWindow);
  for (int64_t at = n - 1; at > n_old; --at) {
    const int64_t distance = marks.back() - at;
    const bool ends_message = model.is_end_of_generation(tokens[at - 1]);
    if (distance >= std::max(least, kMostDistance) || (ends_message && distance >= least)) {
      marks.push_back(at);
    }
  }
  std::reverse(marks.begin(), marks.end());
  return marks;
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
  if (prefix.last_cut(n) != n) {
    fail(ErrorCode::kUsage,
         "n_from_prefix is {}: recurrent layers can go on only from where their state was set "
         "aside, before that after {} tokens (KvPrefix::last_cut)",
         n, prefix.last_cut(n));
  }
  if (!std::equal(rows.tokens.begin(), rows.tokens.begin() + n, tokens.begin())) {
    fail(ErrorCode::kUsage, "the prompt does not begin with the {} tokens of the prefix", n);
  }
}

KvPrefix::Impl::File::File(MmapFile opened, const std::string& name)
    : map(std::move(opened)),
      blocks(map.bytes(), name, CacheContents::all_rows),
      saved(read_prefix_file(blocks)) {}

void KvPrefix::Impl::append_to(RowState& layer, int il, int64_t begin, int64_t end) const {
  Backend& backend = backend_of(*model);
  const StateShape& shape = layer_spec(*model, il).state;
  const auto append = [&](const RowState& rows, int64_t first, int64_t n) {
    layer.append(backend, rows, std::vector<int32_t>(shape.n_head, static_cast<int32_t>(first)), n);
  };
  if (file) {
    return file->with_layer(shape, il, [&](const LayerState& layer_of_file) {
      append(layer_of_file.rows(), begin, end - begin);
    });
  }
  int64_t first = 0;  // of the part
  for (const Part& part : parts) {
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(end, first + part.n_tokens);
    if (from < to) append(*part.rows->layers[il], from - first, to - from);
    first += part.n_tokens;
  }
}

void KvPrefix::Impl::with_marks(int il,
                                const std::function<void(const RecurrentState&)>& use) const {
  if (file) {
    return file->with_layer(layer_spec(*model, il).state, il,
                            [&](const LayerState& layer) { use(*layer.as_recurrent()); });
  }
  use(*states[il]);
}

void KvPrefix::Impl::restore(RecurrentState& state, int il, int64_t n) const {
  with_marks(il,
             [&](const RecurrentState& marked) { state.restore(backend_of(*model), marked, n); });
}

int KvPrefix::Impl::first_recurrent() const {
  const std::vector<LayerSpec>& layers = model->info().spec->layers;
  const auto at = std::find_if(layers.begin(), layers.end(),
                               [](const LayerSpec& layer) { return layer.state.n_recurrent > 0; });
  return at == layers.end() ? -1 : static_cast<int>(at - layers.begin());
}

std::vector<int64_t> KvPrefix::Impl::shared_marks(int64_t n_tokens) const {
  constexpr size_t kLast = 2;  // so that a conversation's last message may be edited
  std::vector<int64_t> all;
  with_marks(first_recurrent(), [&](const RecurrentState& marked) { all = marked.marks(); });
  const int64_t least = mark_distance(*model->info().spec, type);
  std::vector<int64_t> shared;
  for (auto mark = all.rbegin(); mark != all.rend(); ++mark) {
    if (*mark > n_tokens) continue;
    if (shared.size() < kLast || shared.back() - *mark >= least) shared.push_back(*mark);
  }
  std::reverse(shared.begin(), shared.end());
  return shared;
}

int64_t KvPrefix::last_cut(int64_t n) const {
  n = std::min(n, std::ssize(impl_->tokens));
  const int il = impl_->first_recurrent();
  if (il < 0) return n;
  int64_t last = 0;
  impl_->with_marks(il, [&](const RecurrentState& marked) { last = marked.last_cut(n); });
  return last;
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
  const std::unique_ptr<LayerState> layer = make_prefix_state(shape, of_this, saved.type);
  const SavedState state = blocks.state(kPrefixBlocks + il, il, *layer, saved.n_past);
  layer->borrow(state);
  const RowState* const rows = layer->as_rows();
  for (const int32_t n : rows != nullptr ? rows->n_rows() : std::vector<int32_t>()) {
    if (n == state.n_tokens) continue;
    fail(ErrorCode::kBadModel, "{}: {} rows are not those of {} tokens", state.name, n,
         state.n_tokens);
  }
  use(*layer);
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
  if (old != nullptr && old->impl().first_recurrent() >= 0) {
    old_marks_ = old->impl().shared_marks(n_old);
  }
}

/// An empty layer with room for all rows.
RowState& PrefixMaker::add_layer(PrefixRows& rows, int il) const {
  SNAPKV_CHECK(std::ssize(rows.layers) == il);
  const StateShape& shape = KvPrefix::Impl::layer_spec(*making_->model, il).state;
  auto layer = make_full_state(shape, rows.meter, making_->type);
  const auto n = static_cast<int32_t>(rows.n_tokens);
  layer->reserve(backend_, n, n);
  RowState& added = *layer;
  rows.layers.push_back(std::move(layer));
  return added;
}

void PrefixMaker::keep_layer(int il, const RowState& computed) {
  if (copied_) {
    old_->impl().append_to(add_layer(*copied_, il), il, n_shared_, n_shared_ + copied_->n_tokens);
  }
  std::vector<int32_t> first = computed.n_rows();
  for (int32_t& row : first) row -= static_cast<int32_t>(own_->n_tokens);
  add_layer(*own_, il).append(backend_, computed, first, own_->n_tokens);
}

void PrefixMaker::skip_layer(int il) {
  for (PrefixRows* rows : {copied_.get(), own_.get()}) {
    if (rows == nullptr) continue;
    SNAPKV_CHECK(std::ssize(rows->layers) == il);
    rows->layers.push_back(nullptr);
  }
}

void PrefixMaker::keep_state(int il, RecurrentState& computed) {
  const StateShape& shape = KvPrefix::Impl::layer_spec(*making_->model, il).state;
  if (!shape.has_rows()) skip_layer(il);
  auto state = std::make_unique<RecurrentState>(making_->meter, shape);
  if (old_ != nullptr) {
    old_->impl().with_marks(il, [&](const RecurrentState& marked) {
      for (const int64_t n : old_marks_) state->share_mark(backend_, marked, n);
    });
  }
  for (const int64_t n : computed.marks()) state->share_mark(backend_, computed, n);
  making_->states.resize(il);
  making_->states.push_back(std::move(state));
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

void KvPrefix::save(const std::string& path, DType type, std::string_view notes,
                    int64_t n_tokens) const {
  const ModelInfo& info = impl_->model->info();
  validate_kv_type(type, info);
  require_range("n_tokens", n_tokens, 0, std::ssize(impl_->tokens));
  const auto tokens =
      std::span(impl_->tokens).first(n_tokens > 0 ? n_tokens : impl_->tokens.size());
  Backend& backend = Impl::backend_of(*impl_->model);
  if (backend.is_device()) {
    fail(ErrorCode::kUsage, "rows in a GPU's memory can't be saved: that is for the CPU");
  }
  CacheFileWriter out(path, CacheContents::all_rows);
  write_head(out, {impl_->model->fingerprint(), model_label(info), std::string(notes), type,
                   impl_->n_ctx, std::ssize(tokens)});
  out.block("tokens", std::as_bytes(tokens));
  KvMeter meter;
  const auto n = static_cast<int32_t>(std::ssize(tokens));
  for (int il = 0; il < info.n_layer; ++il) {
    const StateShape& shape = Impl::layer_spec(*impl_->model, il).state;
    const std::unique_ptr<LayerState> converted = make_prefix_state(shape, meter, type);
    if (RowState* rows = converted->as_rows()) {
      rows->reserve(backend, n, n);
      impl_->append_to(*rows, il, 0, n);
    }
    if (RecurrentState* state = converted->as_recurrent()) {
      impl_->with_marks(il, [&](const RecurrentState& marked) {
        for (const int64_t mark : marked.marks()) {
          if (mark <= n) state->share_mark(backend, marked, mark);
        }
      });
    }
    out.layer_block(converted->kind(), il,
                    [&](const ByteSink& sink) { converted->save(backend, sink); });
  }
  out.finish();
}

namespace {

void check_loadable(const std::shared_ptr<const Model>& model, const std::string& name) {
  if (model == nullptr) fail(ErrorCode::kUsage, "KvPrefix::load: the model is null");
  if (!KvPrefix::Impl::backend_of(*model).is_device()) return;
  fail(ErrorCode::kUsage, "'{}': uncompressed rows in a file are for the CPU", name);
}

std::shared_ptr<const KvPrefix> load_rows(std::shared_ptr<const Model> model,
                                          std::unique_ptr<const KvPrefix::Impl::File> file) {
  auto impl = std::make_unique<KvPrefix::Impl>();
  impl->file = std::move(file);
  check_model(impl->file->blocks, impl->file->saved, *model, kPrefixBlocks + model->info().n_layer);
  impl->n_ctx = impl->file->saved.n_ctx;
  impl->type = impl->file->saved.type;
  impl->tokens = impl->file->saved.tokens;
  impl->model = std::move(model);
  return std::make_shared<KvPrefix>(std::move(impl));
}

}  // namespace

std::shared_ptr<const KvPrefix> KvPrefix::load(std::shared_ptr<const Model> model,
                                               const std::string& path) {
  check_loadable(model, path);
  return load_rows(std::move(model), std::make_unique<Impl::File>(MmapFile(path), path));
}

std::shared_ptr<const KvPrefix> KvPrefix::load(std::shared_ptr<const Model> model,
                                               const LentFile& file) {
  check_loadable(model, file.name);
  return load_rows(std::move(model), std::make_unique<Impl::File>(MmapFile(file), file.name));
}

bool is_prefix_file(const std::string& path) {
  return cache_contents(path) == CacheContents::all_rows;
}

bool is_prefix_file(const LentFile& file) {
  return cache_contents(file) == CacheContents::all_rows;
}

bool is_cache_file(const std::string& path) { return is_saved_cache(path); }

SavedPrefix describe_prefix(const std::string& path) {
  const MmapFile map(path);
  return read_prefix_file(CacheFile(map.bytes(), path, CacheContents::all_rows));
}

SavedPrefix describe_prefix(const LentFile& file) {
  return read_prefix_file(CacheFile(file.bytes, file.name, CacheContents::all_rows));
}

}  // namespace snapkv
