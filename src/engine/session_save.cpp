// SPDX-License-Identifier: MIT
// Session::save() (docs/session-file.md has the layout).
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/stop_check.h"
#include "engine/session_file.h"
#include "engine/session_impl.h"
#include "engine/sessions_in_use.h"
#include "engine/zstd_frame.h"
#include "snapkv/model_files.h"

namespace snapkv {
namespace {

class SessionWriter {
 public:
  SessionWriter(const std::string& path, int zstd_level)
      : file_(path, /*overwrite=*/true), level_(zstd_level) {
    XXH3_64bits_reset(&hash_);
  }
  void bytes(const void* data, size_t n) {
    XXH3_64bits_update(&hash_, data, n);
    file_.write({static_cast<const std::byte*>(data), n});
  }
  /// Writes a part of a layer's rows, or collects it for the layer's frame.
  void rows(const void* data, size_t n) {
    if (level_ == 0) return bytes(data, n);
    const auto* const begin = static_cast<const std::byte*>(data);
    rows_.insert(rows_.end(), begin, begin + n);
  }
  void end_rows() {
    if (level_ == 0) return;
    const std::vector<std::byte> frame = make_zstd_frame(rows_, level_);
    rows_.clear();
    number(static_cast<uint64_t>(frame.size()));
    bytes(frame.data(), frame.size());
  }
  template <typename T>
  void number(T value) {
    bytes(&value, sizeof(value));
  }
  void text(std::string_view s) {
    number(static_cast<uint64_t>(s.size()));
    bytes(s.data(), s.size());
  }
  void finish() {
    const uint64_t checksum = XXH3_64bits_digest(&hash_);
    file_.write(std::as_bytes(std::span(&checksum, 1)));
    file_.commit();
  }

 private:
  AtomicFile file_;
  XXH3_state_t hash_;
  int level_;                    // 0: rows are stored as they are
  std::vector<std::byte> rows_;  // of one layer, until they are made a frame
};

/// Writes the rows of each head in turn; `row` gives a head's first row, `n_bytes` is a row's size.
template <typename RowFn>
void write_rows(SessionWriter& out, Backend& backend, const KvLayer& layer, size_t n_bytes,
                std::vector<char>& buffer, RowFn row) {
  for (int h = 0; h < layer.n_head_kv(); ++h) {
    buffer.resize(layer.n_kv(h) * n_bytes);
    backend.download(buffer.data(), row(h), buffer.size());
    out.rows(buffer.data(), buffer.size());
  }
}

void write_layer(SessionWriter& out, const Session::Impl& s, int il, std::vector<char>& buffer) {
  const KvLayer& layer = s.layers[il];
  const SessionStats::Layer& stats = s.stats.layers[il];
  out.number(stats.n_total);
  for (int h = 0; h < layer.n_head_kv(); ++h) {
    out.number(stats.n_kept[h]);
    out.number(int64_t{layer.n_kv(h)});
  }
  const size_t row = row_bytes(layer.dtype(), s.info().head_dim);
  Backend& backend = s.backend();
  write_rows(out, backend, layer, sizeof(int32_t), buffer, [&](int h) { return layer.pos(h); });
  write_rows(out, backend, layer, row, buffer, [&](int h) { return layer.k(h); });
  write_rows(out, backend, layer, row, buffer, [&](int h) { return layer.v(h); });
  if (s.queries && s.queries.size() > 0) {
    const Buffer q = s.queries.last(backend, il, s.queries.size());
    buffer.resize(q.bytes());
    backend.download(buffer.data(), q.data(), q.bytes());
    out.rows(buffer.data(), buffer.size());
  }
  out.end_rows();
}

void write_head(SessionWriter& out, const Session::Impl& s, std::string_view notes,
                uint32_t version) {
  const ModelInfo& info = s.info();
  out.bytes(kSessionMagic, sizeof(kSessionMagic));
  out.number(version);
  out.number(s.model->fingerprint());
  out.text(info.name);
  out.text(notes);
  out.text(s.options.kv.name);
  const std::vector<PolicySetting> settings = policy_settings(s.options.kv);
  out.number(int64_t{std::ssize(settings)});
  for (const PolicySetting& setting : settings) {
    out.text(setting.param->name);
    out.text(value_text(setting.value));
  }
  out.text(name(s.options.kv_type));
  out.number(s.options.kv_decode_limit);
  const int64_t n_queries = s.queries ? s.queries.size() : 0;
  for (const int64_t n : {s.n_past, s.n_ctx, info.n_layer, info.n_head, info.n_head_kv,
                          info.head_dim, info.n_vocab, n_queries}) {
    out.number(n);
  }
}

}  // namespace

void Session::save(const std::string& path, std::string_view notes, int zstd_level) const {
  check_zstd_level(zstd_level);
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "save");
  const Impl& s = *self;
  if (s.layers.empty()) fail(ErrorCode::kUsage, "save: the session has read no prompt yet");
  if (s.options.kv_refresh && s.policy->info().has_budget) {
    fail(ErrorCode::kUsage,
         "save: with kv_refresh a session has uncompressed rows, which are no part of its file");
  }
  check_cache_path(path);
  SessionWriter out(path, zstd_level);
  write_head(out, s, notes, zstd_level > 0 ? kSessionVersionZstd : kSessionVersion);
  const std::span<const float> last = logits();
  out.bytes(last.data(), last.size_bytes());
  std::vector<char> buffer;
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    check_stop("saving the cache");
    write_layer(out, s, il, buffer);
  }
  out.finish();
}

}  // namespace snapkv
