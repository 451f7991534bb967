// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/common/plain_text.h"
#include "cli/common/units.h"
#include "cli/info/report.h"

namespace snapkv::cli {
namespace {

constexpr int kLabelWidth = 15;  // width of the labels, with the blank after each
constexpr int kLeastWidth = 40;  // narrower terminals wrap by themselves

/// Breaks text at blanks into lines of at most `width` columns; lines after the first are indented.
/// A word longer than a line is cut into pieces.
std::string wrapped(std::string_view text, int width, int indent) {
  std::string out;
  int column = indent;  // the label is already on the first line
  const auto new_line = [&] {
    out += "\n" + std::string(indent, ' ');
    column = indent;
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    int columns = static_cast<int>(n_columns(word));
    if (column > indent && column + 1 + columns > width) {
      new_line();
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    while (column + columns > width && word.size() > 1) {
      size_t n = std::min<size_t>(word.size(), width - column);
      while (n > 1 && n < word.size() && (static_cast<unsigned char>(word[n]) & 0xc0) == 0x80) --n;
      out += word.substr(0, n);
      word.remove_prefix(n);
      columns = static_cast<int>(n_columns(word));
      if (!word.empty()) new_line();
    }
    out += word;
    column += columns;
  }
  return out;
}

/// Text from a file, made safe for a terminal and at most a few lines long.
std::string shown(std::string_view text) { return terminal_text(text, 300); }

/// Returns "5, 11, 17 and 30 more".
std::string list_of(const std::vector<int>& layers) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(layers.size(), kMost); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", layers[i]);
  }
  if (layers.size() > kMost) text += fmt::format(" and {} more", layers.size() - kMost);
  return text;
}

/// Returns "full in all 16 layers", or "sliding window of 512 tokens in 22 layers; full in 4 (5,
/// 11, ...)".
std::string attention_text(const ModelInfo& m) {
  std::map<std::string, std::vector<int>> kinds;
  std::vector<int> unrotated;
  for (int il = 0; il < std::ssize(m.layers); ++il) {
    const LayerInfo& layer = m.layers[il];
    std::string kind = name(layer.attention);
    if (layer.window > 0) kind += fmt::format(" of {}", plural(layer.window, "token"));
    if (layer.attention == AttentionKind::none) {
      const bool has_state = kv_layer_bytes(m, DType::f16, il, 0) > 0;
      kinds[has_state ? "none, but a state of fixed size," : "none, a feed-forward network only,"]
          .push_back(il);
      continue;
    }
    if (kv_layer_bytes(m, DType::f16, il, 0) > 0) kind += ", and a state of fixed size,";
    kinds[kind].push_back(il);
    if (!layer.rotated) unrotated.push_back(il);
  }
  std::string text;
  if (kinds.size() == 1) {
    text = fmt::format("{} in all {}", kinds.begin()->first, plural(m.n_layer, "layer"));
  } else {
    std::vector<std::pair<std::string, std::vector<int>>> sorted(kinds.begin(), kinds.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second.size() > b.second.size();
    });
    for (const auto& [kind, layers] : sorted) {
      text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", kind,
                          plural(std::ssize(layers), "layer"));
      if (&kind != &sorted.front().first) text += fmt::format(" ({})", list_of(layers));
    }
  }
  if (!unrotated.empty() && std::ssize(unrotated) == m.n_layer) return text + "; no rotation";
  if (!unrotated.empty()) text += fmt::format("; no rotation in layers {}", list_of(unrotated));
  return text;
}

/// Returns "36.0 KiB per token of 4 layers, in f16; 22 layers with a window at most 11.0 MiB".
std::string kv_text(const ModelInfo& m, DType kv_type) {
  int64_t n_full = 0, n_window = 0, n_chunked = 0, n_fixed = 0, n_shared = 0;
  size_t token = 0, windows = 0, fixed = 0;
  for (int64_t il = 0; il < m.n_layer; ++il) {
    const LayerInfo& layer = m.layers[il];
    if (layer.rows_of >= 0) {
      ++n_shared;
      continue;
    }
    const size_t bytes = kv_layer_bytes(m, kv_type, il, 0);  // of no tokens
    if (bytes > 0) ++n_fixed;
    fixed += bytes;
    if (layer.attention == AttentionKind::full) {
      ++n_full;
      token += kv_layer_bytes(m, kv_type, il, 1) - bytes;
    }
    if (layer.window > 0) {
      ++(layer.attention == AttentionKind::chunked ? n_chunked : n_window);
      windows += kv_layer_bytes(m, kv_type, il, layer.window) - bytes;
    }
  }
  if (n_fixed > 0 && n_fixed == m.n_layer && m.n_head == 0) {
    return fmt::format("none; {} with a state of fixed size take {}", plural(n_fixed, "layer"),
                       format_bytes(fixed));
  }
  std::string text = fmt::format("{} per token in {}", format_bytes(token), name(kv_type));
  if (n_full != m.n_layer) text += fmt::format(", of {}", plural(n_full, "layer"));
  if (n_window + n_chunked > 0) {
    text += fmt::format("; {} with {} take {} at most", plural(n_window + n_chunked, "layer"),
                        n_chunked > 0 ? "chunks" : "a window", format_bytes(windows));
  }
  if (n_fixed > 0) {
    text += fmt::format("; {} with a state of fixed size take {}", plural(n_fixed, "layer"),
                        format_bytes(fixed));
  }
  if (n_shared > 0) {
    text += fmt::format("; {} {} rows of earlier layers", plural(n_shared, "layer"),
                        n_shared == 1 ? "reads" : "read");
  }
  return text;
}

std::string types_text(const ModelDescription& d) {
  std::string text;
  for (const TypeShare& share : d.types) {
    const double percent = d.info.weight_bytes > 0 ? 100.0 * static_cast<double>(share.bytes) /
                                                         static_cast<double>(d.info.weight_bytes)
                                                   : 0.0;
    text +=
        fmt::format("{}{} {:.{}f}% ({})", text.empty() ? "" : ", ", share.type, percent,
                    percent < 99.95 && percent >= 0.05 ? 1 : 0, plural(share.n_tensors, "tensor"));
  }
  return text.empty() ? "no tensors" : text;
}

/// "8192 tokens, the whole context, ...", or what fits of it.
std::string longest_text(const ModelInfo& m, const InfoPlans& p) {
  const std::string both = fmt::format("{} with the full cache, {} with {}, in {} of free memory",
                                       plural(p.longest_full, "token"), p.longest_kept,
                                       p.options.kv.name, format_bytes(p.free_memory));
  if (m.n_ctx_train <= 0 || p.longest_kept <= m.n_ctx_train) return both;
  if (p.longest_full <= m.n_ctx_train) {
    return fmt::format(
        "{}, the whole context, with {}; {} with the full cache, in {} of free "
        "memory",
        plural(m.n_ctx_train, "token"), p.options.kv.name, p.longest_full,
        format_bytes(p.free_memory));
  }
  return fmt::format("{}, the whole context, with any cache; {} of free memory would hold {}",
                     plural(m.n_ctx_train, "token"), format_bytes(p.free_memory),
                     plural(p.longest_full, "token"));
}

class Facts {
 public:
  explicit Facts(int width) : width_(width) {}
  void add(const char* label, const std::string& value) {
    text_ += fmt::format("{:<{}}{}\n", label, kLabelWidth, wrapped(value, width_, kLabelWidth));
  }
  void add_size(const char* label, int64_t n, const std::string& value) {
    if (n > 0) add(label, value);
  }
  const std::string& text() const { return text_; }

 private:
  int width_;
  std::string text_;
};

std::string facts(const InfoReport& r, int width) {
  const ModelDescription& d = r.model;
  const ModelInfo& m = d.info;
  Facts facts(width);
  for (const std::string& problem : d.problems) facts.add("can't run", shown(problem));
  facts.add("model", m.name.empty() ? "(no name)" : shown(m.name));
  facts.add("file", printable(m.path));
  const std::string architecture = m.architecture.empty() ? "(not named)" : shown(m.architecture);
  facts.add("family",
            d.family.empty() ? architecture : fmt::format("{}: {}", architecture, d.family));
  facts.add("parameters",
            fmt::format("{}, {}", format_count(m.n_params), format_bytes(m.weight_bytes)));
  facts.add("types", types_text(d));
  facts.add_size("layers", m.n_layer,
                 fmt::format("{}, {} wide{}", m.n_layer, m.n_embd,
                             m.n_ff > 0 ? fmt::format(", feed-forward {}", m.n_ff) : ""));
  facts.add_size("experts", m.n_expert,
                 fmt::format("{} in a layer, {} for each token; {} parameters active", m.n_expert,
                             m.n_expert_used, format_count(m.n_active_params)));
  facts.add_size("heads", m.n_head,
                 m.head_dim > 0
                     ? fmt::format("{} query, {} KV, {} wide", m.n_head, m.n_head_kv, m.head_dim)
                     : fmt::format("{} query, {} KV", m.n_head, m.n_head_kv));
  if (!m.layers.empty()) facts.add("attention", attention_text(m));
  facts.add_size("vocabulary", m.n_vocab,
                 fmt::format("{}, {}", plural(m.n_vocab, "token"), shown(m.tokenizer)));
  facts.add("chat template",
            d.chat_template.empty()
                ? "none"
                : fmt::format("{} of Jinja", format_bytes(d.chat_template.size())));
  std::string context = plural(m.n_ctx_train, "token");
  if (m.yarn_factor > 0) {
    context += fmt::format(", by YaRN {} times the {} that it was trained with", m.yarn_factor,
                           m.yarn_orig_ctx);
  }
  facts.add_size("context", m.n_ctx_train, context);
  if (r.plans) {
    facts.add("KV cache", kv_text(m, r.plans->options.kv_type));
    facts.add("longest prompt", longest_text(m, *r.plans));
  }
  return facts.text();
}

/// Describes the decode limit, which does not apply to layers with a window: they are not
/// compressed.
std::string decode_limit_text(const ModelInfo& m, const InfoPlans& p) {
  const int64_t limit = p.options.kv_decode_limit;
  size_t bytes = 0;
  for (int64_t il = 0; il < m.n_layer; ++il) {
    const int64_t n_rows = m.layers[il].compressed ? limit : m.full_rows(il, p.n_tokens);
    bytes += kv_layer_bytes(m, p.options.kv_type, il, n_rows);
  }
  return fmt::format(
      "--kv-decode-limit {}: generated tokens make it at most {}, and one layer while that is "
      "compressed",
      limit, format_bytes(bytes));
}

std::string plan_table(const ModelInfo& m, const InfoPlans& p, int width) {
  std::string text =
      "\n" +
      wrapped(fmt::format("Memory for a prompt of {} (KV {}, compute {}):",
                          plural(p.n_tokens, "token"), name(p.options.kv_type), name(p.compute)),
              width, 0) +
      "\n";
  const int column = std::max<int>(12, std::ssize(p.options.kv.name) + 2);
  const int label = std::min(32, width - 12 - column);
  const auto row = [&](std::string_view what, const std::string& full, const std::string& kept) {
    text += fmt::format("{}{:>12}{:>{}}\n", fit(what, label, ".."), full, kept, column);
  };
  row("", "full cache", p.options.kv.name);
  for (const InfoPlanRow& r : plan_rows(p)) {
    const bool is_optional = r.key == std::string_view("queries") ||
                             r.key == std::string_view("kv_history") ||
                             r.key == std::string_view("draft");
    if (is_optional && r.full == 0 && r.kept == 0) continue;
    row(r.label, format_bytes(r.full), format_bytes(r.kept));
  }
  if (p.kept.kv_kept > 0) {
    const double compression =
        static_cast<double>(p.full.kv_kept) / static_cast<double>(p.kept.kv_kept);
    row("KV kept, compression", "1.0x", fmt::format("{:.1f}x", compression));
  }
  const auto note = [&](const std::string& line) { text += wrapped(line, width, 0) + "\n"; };
  note(fmt::format("{}: {}", p.options.kv.name, describe_policy(p.options.kv)));
  if (p.options.kv_memory > 0) note(describe_memory_budget(p.options));
  if (p.options.kv_decode_limit > 0) note(decode_limit_text(m, p));
  return text;
}

/// A line of a list: complete, or cut to fit.
std::string line(const std::string& text, int width, bool cut) {
  if (!cut || n_columns(text) <= static_cast<size_t>(width)) return text + "\n";
  // cut first, because fit() measures the whole text for every character
  std::string fitted = fit(text.substr(0, 4 * static_cast<size_t>(width)), width, "...");
  fitted.resize(fitted.find_last_not_of(' ') + 1);
  return fitted + "\n";
}

std::string metadata_list(const std::vector<MetadataEntry>& entries, int width, bool cut) {
  std::string text = fmt::format("\nMetadata, {}:\n", plural(std::ssize(entries), "key"));
  for (const MetadataEntry& e : entries) {
    text +=
        line(fmt::format("  {}  {}  {}", printable(e.key), e.type, printable(e.value)), width, cut);
  }
  return text;
}

std::string tensor_list(const std::vector<TensorEntry>& tensors, int width, bool cut) {
  // a malicious name may have millions of bytes, and every line is as wide as the longest one
  const auto shown_name = [](const TensorEntry& t) { return printable(t.name.substr(0, 1000)); };
  size_t longest = 0;
  for (const TensorEntry& t : tensors) longest = std::max(longest, shown_name(t).size());
  constexpr size_t kOthers = 2 + 2 + 7 + 1 + 20 + 1 + 10;  // columns beside the name
  if (cut)
    longest = std::min(longest, std::max<size_t>(12, width - std::min<size_t>(width, kOthers)));
  std::string text = fmt::format("\nTensors, {}:\n", std::ssize(tensors));
  for (const TensorEntry& t : tensors) {
    const std::string tensor_name = shown_name(t);
    const std::string label =
        cut ? fit(tensor_name, longest, "...") : fmt::format("{:<{}}", tensor_name, longest);
    text += line(fmt::format("  {}  {:<7} {:<20} {:>10}", label, t.type, format_shape(t.shape),
                             t.bytes > 0 ? format_bytes(t.bytes) : "-"),
                 width, cut);
  }
  return text;
}

}  // namespace

std::vector<InfoPlanRow> plan_rows(const InfoPlans& p) {
  const MemoryPlan &f = p.full, &k = p.kept;
  return {{"weights", "weights, mapped from the file", f.weights, k.weights},
          {"packed_weights", "weights, packed", f.packed_weights, k.packed_weights},
          {"hidden_states", "hidden states", f.hidden_states, k.hidden_states},
          {"activations", "activations of a chunk", f.activations, k.activations},
          {"kv_scratch", "KV of one layer, uncompressed", f.kv_scratch, k.kv_scratch},
          {"kv_kept", "KV kept, all layers", f.kv_kept, k.kv_kept},
          {"queries", "queries for --kv-decode-limit", f.queries, k.queries},
          {"kv_history", "all rows, beside the kept", f.kv_history, k.kv_history},
          {"draft", "the model that guesses", f.draft, k.draft},
          {"logits", "logits", f.logits, k.logits},
          {"scores", "scores of one layer's rows", f.scores, k.scores},
          {"kernels", "work space of kernels", f.kernels, k.kernels},
          {"total", "total", f.total(), k.total()},
          {"kv_peak", "of it KV, at most", f.kv_peak(), k.kv_peak()}};
}

std::string info_text(const InfoReport& report, int width, bool cut) {
  width = std::max(width, kLeastWidth);
  std::string text = facts(report, width);
  if (report.plans) text += plan_table(report.model.info, *report.plans, width);
  if (report.metadata) text += metadata_list(report.model.metadata, width, cut);
  if (report.tensors) text += tensor_list(report.model.tensors, width, cut);
  return text;
}

}  // namespace snapkv::cli
