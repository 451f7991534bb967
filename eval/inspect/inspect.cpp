// SPDX-License-Identifier: MIT
#include "eval/inspect/inspect.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "eval/common/runner.h"
#include "eval/inspect/attention.h"
#include "eval/inspect/maps.h"

namespace snapkv::eval {
namespace {

// The number of bytes of `text` without an incomplete character at its end.
size_t complete_bytes(const std::string& text) {
  size_t back = 1;
  while (back <= 3 && back <= text.size()) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) return text.size();
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 0;
    if (length > 0) return length > back ? text.size() - back : text.size();
    ++back;
  }
  return text.size();
}

Json model_json(const ModelInfo& m) {
  return {{"name", to_utf8(m.name)},
          {"file", to_utf8(std::filesystem::path(m.path).filename().string())},
          {"architecture", m.architecture},
          {"file_type", m.file_type},
          {"n_layer", m.n_layer},
          {"n_head", m.n_head},
          {"n_head_kv", m.n_head_kv},
          {"head_dim", m.head_dim}};
}

Json cache_json(const SessionStats& stats, DType type) {
  Json n_kept = Json::array();
  for (const SessionStats::Layer& layer : stats.layers) n_kept.push_back(layer.n_kept);
  return {{"type", name(type)},
          {"bytes_full", stats.kv_bytes_full},
          {"bytes_kept", stats.kv_bytes_used},
          {"bytes_peak", stats.kv_bytes_peak},
          {"n_kept", std::move(n_kept)}};
}

// The tokens that layers and heads kept, gathered in one pass over their positions.
struct Kept {
  KeptMap map;
  std::vector<int32_t> by_token;  // [n_tokens]: how many pairs of layer and head kept it
};

Kept gather_kept(const Session& session, const Rows& rows, const Columns& columns) {
  const std::vector<LayerInfo>& layers = session.model().info().layers;
  Kept kept{KeptMap(rows, columns), std::vector<int32_t>(static_cast<size_t>(columns.n_tokens), 0)};
  for (int64_t il = 0; il < rows.n_layer; ++il) {
    for (int64_t head = 0; head < layers[static_cast<size_t>(il)].n_head_kv; ++head) {
      const std::vector<int32_t> positions =
          session.cached_positions(static_cast<int>(il), static_cast<int>(head));
      kept.map.add(il, head, positions);
      for (const int32_t pos : positions) ++kept.by_token[static_cast<size_t>(pos)];
    }
  }
  return kept;
}

// The first and last tokens of a text that is longer than the limit, otherwise all of it in one
// part.
Json text_json(const InspectOptions& o, const std::vector<int32_t>& kept_by) {
  const std::vector<std::string> texts = token_texts(*o.model, o.tokens, o.shows_control);
  const int64_t n = std::ssize(texts);
  Json parts = Json::array();
  const auto add = [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    parts.push_back(
        {{"begin", begin},
         {"pieces", std::vector<std::string>(texts.begin() + begin, texts.begin() + end)},
         {"kept_by", std::vector<int32_t>(kept_by.begin() + begin, kept_by.begin() + end)}});
  };
  if (n <= o.text_limit) {
    add(0, n);
  } else {
    const int64_t first = (o.text_limit + 1) / 2;
    add(0, first);
    add(n - (o.text_limit - first), n);
  }
  return parts;
}

}  // namespace

std::vector<std::string> token_texts(const Model& model, std::span<const int32_t> tokens,
                                     bool special) {
  std::vector<std::string> texts;
  texts.reserve(tokens.size());
  std::string held;
  for (const int32_t id : tokens) {
    held += model.piece(id, special);
    const size_t n = complete_bytes(held);
    texts.push_back(to_utf8(held.substr(0, n)));
    held.erase(0, n);
  }
  if (!held.empty()) texts.back() += to_utf8(held);
  return texts;
}

Json inspect(const InspectOptions& o) {
  const ModelInfo& info = o.model->info();
  if (info.n_head == 0) {
    fail(ErrorCode::kUsage, "{} has no attention: there are no rows to show", info.path);
  }
  const int64_t n_tokens = std::ssize(o.tokens);
  const Columns columns(n_tokens);
  const Rows rows(info.n_layer, info.n_head_kv);
  Session session(o.model, o.session);
  AttentionGatherer attention(info, session.options().kv, columns, rows, o.spotlights);
  const AttentionProbe probe = attention.probe();
  session.prefill(o.tokens, {.progress = o.progress, .probe = &probe});
  const SessionStats& stats = session.stats();
  const SessionOptions& options = session.options();
  const Kept kept = gather_kept(session, rows, columns);
  return {{"kind", "inspect"},
          {"version", version()},
          {"model", model_json(info)},
          {"backend", o.model->backend_description()},
          {"configuration", configuration_json(options)},
          {"label", configuration_label(options)},
          {"n_tokens", n_tokens},
          {"window", attention.window()},
          {"text", text_json(o, kept.by_token)},
          {"text_limit", o.text_limit},
          {"cache", cache_json(stats, options.kv_type)},
          {"seconds",
           {{"prefill", stats.prefill_seconds},
            {"score", stats.score_seconds},
            {"gather", stats.gather_seconds}}},
          {"n_columns", columns.n_columns},
          {"rows", rows.to_json()},
          {"kept", kept.map.to_json()},
          {"score", attention.score_json()},
          {"spotlights", attention.spotlights_json()}};
}

}  // namespace snapkv::eval
