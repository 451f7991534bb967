// SPDX-License-Identifier: MIT
// Session::load(), SavedSessionFile and describe_session(): reading a session's file
// (docs/session-file.md has the layout).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/stop_check.h"
#include "engine/core/session_impl.h"
#include "engine/core/sessions_in_use.h"
#include "engine/files/cache_file.h"
#include "format/mmap_file.h"
#include "snapkv/lent_file.h"

namespace snapkv {
namespace {

/// What the file says of a session, besides its layers.
struct SessionFile {
  SavedSession saved;
  int64_t n_queries = 0;  // tokens whose queries are stored, with kv_decode_limit
  std::vector<SessionStats::Layer> stats;
};

/// The blocks before those of the layers: head, session, logits.
constexpr size_t kSessionBlocks = 3;

[[noreturn]] void fail_differs(std::string_view path, OptionName what, std::string_view saved,
                               std::string_view here) {
  fail(ErrorCode::kUsage, "{}: saved with {} = {}, and this session has {}", path, what, saved,
       here);
}

void read_policy(FieldReader& in, const std::string& path, PolicyConfig& kv) {
  kv.name = in.text("policy");
  const int64_t n = in.number("parameters", 0, 1000);
  try {
    policy_info(kv.name);
    for (int64_t i = 0; i < n; ++i) {
      const std::string name = in.text("parameter");
      set_param_text(kv, name, in.text("value of parameter"));
    }
    validate(kv);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    fail_damaged(path, "{}", printable(e.what()));
  }
}

/// Reads and checks all that needs no model.
SessionFile read_session_file(const CacheFile& file) {
  SessionFile session;
  static_cast<SavedCache&>(session.saved) = read_head(file);
  SessionOptions& options = session.saved.options;
  options.kv_type = session.saved.type;
  FieldReader in(file, 1, "session");
  read_policy(in, file.path(), options.kv);
  options.kv_decode_limit = in.number("kv_decode_limit", 0, kMostRows);
  session.n_queries = in.number("n_queries", 0, kMostRows);
  const auto most = [&] { return static_cast<int64_t>(in.bytes_left() / sizeof(int64_t)); };
  session.stats.resize(in.number("n_layer", 1, most()));
  for (SessionStats::Layer& layer : session.stats) {
    layer.n_total = in.number("rows seen", 0, session.saved.n_past);
    layer.n_kept.resize(in.number("heads", 0, most()));
    for (int64_t& n : layer.n_kept) n = in.number("rows kept", 0, layer.n_total);
  }
  in.end();
  return session;
}

void check_options(const std::string& path, const SessionFile& file, const Session::Impl& s) {
  const SessionOptions& saved = file.saved.options;
  if (s.keeps_all()) {
    fail(ErrorCode::kUsage, "{}: a saved session has no uncompressed rows, which {} needs", path,
         OptionName(s.keeps_all_option()));
  }
  if (saved.kv.name != s.options.kv.name) {
    fail_differs(path, OptionName("policy", "kv_policy"), saved.kv.name, s.options.kv.name);
  }
  const auto theirs = policy_settings(saved.kv), ours = policy_settings(s.options.kv);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i].value == ours[i].value) continue;
    fail_differs(path, OptionName(*ours[i].param), value_text(theirs[i].value),
                 value_text(ours[i].value));
  }
  if (saved.kv_type != s.options.kv_type) {
    fail_differs(path, OptionName("kv_type"), name(saved.kv_type), name(s.options.kv_type));
  }
  if (saved.kv_decode_limit != s.options.kv_decode_limit) {
    fail_differs(path, OptionName("kv_decode_limit"), std::to_string(saved.kv_decode_limit),
                 std::to_string(s.options.kv_decode_limit));
  }
  if (file.saved.n_past > s.n_ctx) {
    fail(ErrorCode::kContextExceeded, "{}: the saved session has {} tokens, the context {}", path,
         file.saved.n_past, s.n_ctx);
  }
  if (!s.architecture().spec().rotate_alike(file.saved.n_ctx, s.n_ctx)) {
    fail_differs(path, OptionName("n_ctx"), std::to_string(file.saved.n_ctx),
                 fmt::format("{}; the model rotates keys of long contexts otherwise", s.n_ctx));
  }
}

/// What a loaded session gets; its layers report to the session's meter.
class Loader {
 public:
  Loader(Session::Impl& s, const CacheFile& blocks, const SessionFile& file)
      : s_(s), blocks_(blocks), file_(file) {}

  LogitRows logits() const {
    LogitRows rows(s_.backend(), s_.info().n_vocab);
    const std::span<float> logits = rows.values();
    blocks_.expect(2, "logits");
    copy(blocks_.bytes(2), std::as_writable_bytes(logits), "logits");
    for (size_t i = 0; i < logits.size(); ++i) {
      if (!std::isfinite(logits[i])) fail_damaged(blocks_.path(), "logits[{}] is not finite", i);
    }
    return rows;
  }

  std::vector<std::unique_ptr<LayerState>> layers() {
    std::vector<std::unique_ptr<LayerState>> layers;
    for (int il = 0; il < s_.info().n_layer; ++il) {
      check_stop("reading the cache");
      auto layer = make_state(s_.architecture().layer_spec(il).state, s_.meter, s_.options.kv_type);
      layer->load(s_.backend(), blocks_.state(next_++, il, *layer, file_.saved.n_past),
                  s_.options.decode_reserve);
      layers.push_back(std::move(layer));
      if (ring_ && ring_.has_layer(il)) load_queries(il);
    }
    return layers;
  }

  /// Makes room for the file's queries, if the session keeps any.
  void make_queries() {
    const int64_t window_size = s_.has_decode_limit() ? s_.policy->window_size() : 0;
    const int64_t least = std::min<int64_t>(window_size, 1);
    if (file_.n_queries < least || file_.n_queries > window_size) {
      fail_damaged(blocks_.path(), "n_queries is {}, expected {} to {}", file_.n_queries, least,
                   window_size);
    }
    if (window_size == 0) return;
    ring_ = s_.make_query_ring();
  }
  QueryRing take_queries() { return std::move(ring_); }

 private:
  void copy(std::span<const std::byte> from, std::span<std::byte> to, const char* what) const {
    if (from.size() != to.size()) {
      fail_damaged(blocks_.path(), "{} have {} bytes, expected {}", what, from.size(), to.size());
    }
    std::copy(from.begin(), from.end(), to.begin());
  }

  void load_queries(int il) {
    const LayerSpec& layer = s_.architecture().layer_spec(il);
    std::vector<std::byte> q(file_.n_queries * layer.n_q() * sizeof(float));
    blocks_.expect(next_, "queries", il);
    copy(blocks_.bytes(next_++), q, "queries");
    const Buffer device = s_.backend().allocate(q.size(), "queries of a saved session");
    s_.backend().upload(device.data(), q.data(), q.size());
    ring_.fill(s_.backend(), il,
               device.view(DType::f32, {file_.n_queries, layer.n_head, layer.state.head_dim_k}));
  }

  Session::Impl& s_;
  const CacheFile& blocks_;
  const SessionFile& file_;
  size_t next_ = kSessionBlocks;  // the next layer's block
  QueryRing ring_;
};

}  // namespace

struct SavedSessionFile::Impl {
  Impl(MmapFile opened, const std::string& name)
      : map(std::move(opened)), blocks(map.bytes(), name, CacheContents::session) {
    blocks.check_all();
    content = read_session_file(blocks);
    check_unchanged();
  }
  void check_unchanged() const { map.check_unchanged("open it again when it is complete"); }

  MmapFile map;
  CacheFile blocks;  // its bytes are the map's
  SessionFile content;
};

SavedSessionFile::SavedSessionFile(const std::string& path)
    : impl_(std::make_unique<Impl>(MmapFile(path), path)) {}
SavedSessionFile::SavedSessionFile(const LentFile& file)
    : impl_(std::make_unique<Impl>(MmapFile(file), file.name)) {}
SavedSessionFile::~SavedSessionFile() = default;

const SavedSession& SavedSessionFile::saved() const { return impl_->content.saved; }
size_t SavedSessionFile::bytes() const { return impl_->map.bytes().size(); }

std::string Session::load(const std::string& path) { return load(SavedSessionFile(path)); }

std::string Session::load(const SavedSessionFile& opened) {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "load");
  Impl& s = *self;
  const CacheFile& blocks = opened.impl().blocks;
  const SessionFile& file = opened.impl().content;
  const std::vector<int64_t> queries = query_floats(s.architecture().spec());
  const size_t n_without = std::count(queries.begin(), queries.end(), 0);
  const size_t n_queries = file.n_queries > 0 ? queries.size() - n_without : 0;
  check_model(blocks, file.saved, *s.model, kSessionBlocks + s.info().n_layer + n_queries);
  check_options(blocks.path(), file, s);
  if (std::ssize(file.stats) != s.info().n_layer) {
    fail_damaged(blocks.path(), "it describes {} layers", file.stats.size());
  }
  Loader loader(s, blocks, file);
  loader.make_queries();
  LogitRows logits = loader.logits();
  auto layers = loader.layers();
  SessionStats stats;
  stats.layers = file.stats;
  s.backend().synchronize();
  opened.impl().check_unchanged();
  // nothing can fail from here on; only kv_refresh has a history, so there is none
  s.layers = std::move(layers);
  s.queries = loader.take_queries();
  s.trace = {};
  s.logits = std::move(logits);
  s.n_past = file.saved.n_past;
  s.text.clear();
  s.draft_reader.reset();
  s.n_run = 0;
  s.stats = std::move(stats);
  s.meter.peak = s.meter.now;
  s.update_memory_stats();
  return file.saved.notes;
}

SavedSession describe_session(const std::string& path) { return SavedSessionFile(path).saved(); }

}  // namespace snapkv
