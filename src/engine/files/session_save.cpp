// SPDX-License-Identifier: MIT
// Session::save() (docs/session-file.md has the layout).
#include "base/error.h"
#include "engine/core/session_impl.h"
#include "engine/core/sessions_in_use.h"
#include "engine/files/cache_file.h"

namespace snapkv {
namespace {

FieldWriter session_fields(const Session::Impl& s) {
  FieldWriter fields;
  fields.text(s.options.kv.name);
  const std::vector<PolicySetting> settings = policy_settings(s.options.kv);
  fields.number(std::ssize(settings));
  for (const PolicySetting& setting : settings) {
    fields.text(setting.param->name);
    fields.text(value_text(setting.value));
  }
  fields.number(s.options.kv_decode_limit);
  fields.number(s.queries ? s.queries.size() : 0);
  fields.number(std::ssize(s.stats.layers));
  for (const SessionStats::Layer& layer : s.stats.layers) {
    fields.number(layer.n_total);
    fields.number(std::ssize(layer.n_kept));
    for (const int64_t n : layer.n_kept) fields.number(n);
  }
  return fields;
}

void save_layer(const Session::Impl& s, int il, CacheFileWriter& out) {
  const LayerState& layer = *s.layers[il];
  out.layer_block(layer.kind(), il,
                  [&](const ByteSink& sink) { layer.save(s.backend(), sink); });
  if (!s.queries || s.queries.size() == 0 || !s.queries.has_layer(il)) return;
  const Buffer q = s.queries.last(s.backend(), il, s.queries.size());
  out.layer_block("queries", il, [&](const ByteSink& sink) {
    std::vector<std::byte> bytes(q.bytes());
    s.backend().download(bytes.data(), q.data(), q.bytes());
    sink(bytes);
  });
}

}  // namespace

void Session::save(const std::string& path, std::string_view notes) const {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "save");
  const Impl& s = *self;
  if (s.layers.empty()) fail(ErrorCode::kUsage, "save: the session has read no prompt yet");
  if (s.keeps_all()) {
    fail(ErrorCode::kUsage,
         "save: with {} a session has uncompressed rows, which are not part of its file",
         OptionName(s.keeps_all_option()));
  }
  CacheFileWriter out(path, CacheContents::session);
  write_head(out, {s.model->fingerprint(), model_label(s.info()), std::string(notes),
                   s.options.kv_type, s.n_ctx, s.n_past});
  out.block("session", session_fields(s).bytes());
  out.block("logits", std::as_bytes(logits()));
  for (int il = 0; il < std::ssize(s.layers); ++il) save_layer(s, il, out);
  out.finish();
}

}  // namespace snapkv
