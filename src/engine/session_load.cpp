// SPDX-License-Identifier: MIT
// Session::load(), SavedSessionFile and describe_session(): reading a session's file
// (docs/session-file.md has the layout).
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/stop_check.h"
#include "engine/session_file.h"
#include "engine/session_impl.h"
#include "engine/sessions_in_use.h"
#include "format/mmap_file.h"

namespace snapkv {

struct SavedSessionFile::Impl {
  explicit Impl(const std::string& path)
      : file(path), content(parse_session_file(file.bytes(), path)) {
    check_unchanged();
  }
  void check_unchanged() const { file.check_unchanged("open it again when it is complete"); }

  MmapFile file;
  SessionFile content;  // its spans point into `file`
};

namespace {

[[noreturn]] void fail_differs(std::string_view path, std::string_view what, std::string_view saved,
                               std::string_view here) {
  fail(ErrorCode::kUsage, "{}: saved with {} = {}, and this session has {}", path, what, saved,
       here);
}

void check_model(const std::string& path, const SessionFile& file, const Session::Impl& s) {
  const ModelInfo& info = s.info();
  if (file.saved.fingerprint != s.model->fingerprint()) {
    fail(ErrorCode::kUsage,
         "{}: saved with another model, \"{}\" of fingerprint {:016x}; this one, {}, has {:016x}",
         path, file.saved.model, file.saved.fingerprint, info.path, s.model->fingerprint());
  }
  const bool fits = std::ssize(file.layers) == info.n_layer && file.n_head == info.n_head &&
                    file.n_head_kv == info.n_head_kv && file.head_dim == info.head_dim &&
                    file.n_vocab == info.n_vocab;
  if (!fits) {
    fail(ErrorCode::kBadModel, "'{}': its sizes are not those of the model that it names", path);
  }
}

void check_options(const std::string& path, const SessionFile& file, const Session::Impl& s) {
  const SessionOptions& saved = file.saved.options;
  if (s.options.kv_refresh && s.policy->info().has_budget) {
    fail(ErrorCode::kUsage, "{}: a saved session has no uncompressed rows, which kv_refresh needs",
         path);
  }
  if (saved.kv.name != s.options.kv.name) {
    fail_differs(path, "policy", saved.kv.name, s.options.kv.name);
  }
  const auto theirs = policy_settings(saved.kv), ours = policy_settings(s.options.kv);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i].value == ours[i].value) continue;
    fail_differs(path, ours[i].param->name, value_text(theirs[i].value), value_text(ours[i].value));
  }
  if (saved.kv_type != s.options.kv_type) {
    fail_differs(path, "kv_type", name(saved.kv_type), name(s.options.kv_type));
  }
  if (saved.kv_decode_limit != s.options.kv_decode_limit) {
    fail_differs(path, "kv_decode_limit", std::to_string(saved.kv_decode_limit),
                 std::to_string(s.options.kv_decode_limit));
  }
  if (file.saved.n_past > s.n_ctx) {
    fail(ErrorCode::kContextExceeded, "{}: the saved session has {} tokens, the context {}", path,
         file.saved.n_past, s.n_ctx);
  }
  if (!s.architecture().spec().rotate_alike(file.n_ctx, s.n_ctx)) {
    fail_differs(path, "n_ctx", std::to_string(file.n_ctx),
                 fmt::format("{}; the model rotates keys of long contexts otherwise", s.n_ctx));
  }
}

KvLayer load_layer(Session::Impl& s, const SessionFileLayer& saved, const SessionFileRows& rows) {
  Backend& backend = s.backend();
  std::vector<int32_t> capacity;
  for (const int32_t n : saved.n_kv) {
    capacity.push_back(static_cast<int32_t>(std::min(n + s.options.decode_reserve, kMostRows)));
  }
  KvLayer layer(backend, s.meter, s.info().head_dim, s.options.kv_type, capacity);
  std::vector<KvLayer::Head> heads(layer.heads().begin(), layer.heads().end());
  for (size_t h = 0; h < heads.size(); ++h) heads[h].n_kv = saved.n_kv[h];
  layer.restore_heads(heads);
  const size_t row = row_bytes(s.options.kv_type, s.info().head_dim);
  int64_t first = 0;  // a head's first row among the rows of all heads
  for (int h = 0; h < layer.n_head_kv(); ++h) {
    const int64_t n = saved.n_kv[h];
    backend.upload(layer.pos(h), rows.positions.data() + first * sizeof(int32_t),
                   n * sizeof(int32_t));
    backend.upload(layer.k(h), rows.keys.data() + first * row, n * row);
    backend.upload(layer.v(h), rows.values.data() + first * row, n * row);
    first += n;
  }
  return layer;
}

/// Makes room for the file's queries, if the session keeps any.
QueryRing make_queries(Session::Impl& s, const SessionFile& file) {
  const int64_t window = s.has_decode_limit() ? s.policy->window_size() : 0;
  if (file.n_queries < std::min<int64_t>(window, 1) || file.n_queries > window) {
    fail(ErrorCode::kBadModel, "'{}': n_queries is {}, expected {} to {}", file.path,
         file.n_queries, std::min<int64_t>(window, 1), window);
  }
  if (window == 0) return {};
  return QueryRing(s.backend(), s.architecture().config(), static_cast<int>(window));
}

void load_queries(Session::Impl& s, const SessionFile& file, const SessionFileRows& rows, int il,
                  QueryRing& ring) {
  if (!ring) return;
  const ModelConfig& config = s.architecture().config();
  const Buffer q = s.backend().allocate(rows.queries.size(), "queries of a saved session");
  s.backend().upload(q.data(), rows.queries.data(), rows.queries.size());
  ring.fill(s.backend(), il, q.view(DType::f32, {file.n_queries, config.n_head, config.head_dim}));
}

}  // namespace

SavedSessionFile::SavedSessionFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
SavedSessionFile::~SavedSessionFile() = default;

const SavedSession& SavedSessionFile::saved() const { return impl_->content.saved; }
size_t SavedSessionFile::bytes() const { return impl_->file.bytes().size(); }

std::string Session::load(const std::string& path) { return load(SavedSessionFile(path)); }

std::string Session::load(const SavedSessionFile& opened) {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "load");
  Impl& s = *self;
  const SessionFile& file = opened.impl().content;
  check_model(file.path, file, s);
  check_options(file.path, file, s);
  QueryRing queries = make_queries(s, file);
  std::vector<float> logits(file.n_vocab);
  std::memcpy(logits.data(), file.logits.data(), file.logits.size());
  std::vector<KvLayer> layers;
  SessionStats stats;
  Buffer decoded;
  for (int il = 0; il < std::ssize(file.layers); ++il) {
    check_stop("reading the cache");
    const SessionFileRows rows = rows_of(file, il, decoded);
    layers.push_back(load_layer(s, file.layers[il], rows));
    load_queries(s, file, rows, il, queries);
    stats.layers.push_back(file.layers[il].stats);
  }
  s.backend().synchronize();
  opened.impl().check_unchanged();
  // nothing can fail from here on; only kv_refresh has a history, so there is none
  s.layers = std::move(layers);
  s.queries = std::move(queries);
  s.logits = std::move(logits);
  s.n_past = file.saved.n_past;
  s.stats = std::move(stats);
  s.meter.peak = s.meter.now;
  s.update_memory_stats();
  return file.saved.notes;
}

SavedSession describe_session(const std::string& path) { return SavedSessionFile(path).saved(); }

}  // namespace snapkv
