// SPDX-License-Identifier: MIT
#include "cli/generate/report.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/common/signals.h"
#include "cli/common/table_options.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "eval/common/runner.h"
#include "snapkv/options.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

double rate(int64_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0.0;
}

std::string stop_note(const RunReport& r) {
  switch (r.generation.stop_reason) {
    case StopReason::eos:
      return "the model ended the answer";
    case StopReason::stop:
      return "stopped at a text of --stop";
    case StopReason::paragraph:
      return "stopped at the paragraph's end; --n-predict N goes on";
    case StopReason::length:
      return r.continues_text ? fmt::format("stopped at {}; --n-predict N sets another limit",
                                            plural(r.limits.max_tokens, "token"))
                              : "stopped at --n-predict";
    case StopReason::context:
      return "stopped: the context is full (--ctx-size)";
    case StopReason::cancelled:
      return fmt::format("stopped by {}", interruption());
  }
  return "";
}

std::string line(const char* label, const std::string& text, bool colour) {
  return paint(Style::dim, fmt::format("{:<12}", label), colour) + " " + text + "\n";
}

// Returns "128 of 4000 rows", with a range where heads differ.
std::string kept_text(const SessionStats::Layer& layer) {
  return fmt::format("{} of {}", format_range(layer.n_kept), plural(layer.n_total, "row"));
}

bool equal(const SessionStats::Layer& a, const SessionStats::Layer& b) {
  return a.n_total == b.n_total && a.n_kept == b.n_kept;
}

// "103 of 1267 rows on average in 24 layers x 2 KV heads, from 62 to 202"
std::string mean_text(const std::vector<SessionStats::Layer>& layers,
                      const std::vector<size_t>& chosen, int64_t n_head_kv) {
  SessionStats::Layer all{.n_total = layers[chosen.front()].n_total, .n_kept = {}};
  for (const size_t il : chosen) {
    all.n_kept.insert(all.n_kept.end(), layers[il].n_kept.begin(), layers[il].n_kept.end());
  }
  const int64_t sum = std::accumulate(all.n_kept.begin(), all.n_kept.end(), int64_t{0});
  const auto [low, high] = std::minmax_element(all.n_kept.begin(), all.n_kept.end());
  return fmt::format("{:.0f} of {} on average in {} x {}, from {} to {}",
                     static_cast<double>(sum) / static_cast<double>(all.n_kept.size()),
                     plural(all.n_total, "row"), plural(std::ssize(chosen), "layer"),
                     plural(n_head_kv, "KV head"), *low, *high);
}

// "128 of 1267 rows in each of 3 layers x 1 KV head"; of layers that are not alike a line each, or
// the mean of many.
std::string lines_of_layers(const RunReport& report, const std::vector<size_t>& chosen,
                            const char* label, bool colour) {
  const std::vector<SessionStats::Layer>& layers = report.after_prefill->layers;
  const bool alike = std::all_of(chosen.begin(), chosen.end(), [&](size_t il) {
    return equal(layers[il], layers[chosen.front()]);
  });
  if (alike) {
    return line(
        label,
        fmt::format("{} in each of {} x {}", kept_text(layers[chosen.front()]),
                    plural(std::ssize(chosen), "layer"), plural(report.model.n_head_kv, "KV head")),
        colour);
  }
  constexpr size_t kMostLines = 4;
  const bool same_total = std::all_of(chosen.begin(), chosen.end(), [&](size_t il) {
    return layers[il].n_total == layers[chosen.front()].n_total;
  });
  if (same_total && chosen.size() > kMostLines) {
    return line(label, mean_text(layers, chosen, report.model.n_head_kv), colour);
  }
  std::string text;
  for (const size_t il : chosen) {
    text += line(il == chosen.front() ? label : "",
                 fmt::format("layer {:<3} {}", il, kept_text(layers[il])), colour);
  }
  return text;
}

// Layers that the policy chose from, and those that no budget touches: with sliding windows, or
// with a state of fixed size.
std::string kept_lines(const RunReport& report, bool colour) {
  const size_t n_layer = report.after_prefill->layers.size();
  std::vector<size_t> chosen, windows;
  std::vector<int64_t> sizes;
  bool in_chunks = false;
  int64_t n_fixed = 0, n_shared = 0;
  for (size_t il = 0; il < n_layer; ++il) {
    if (il < report.model.layers.size() && report.model.layers[il].rows_of >= 0) {
      ++n_shared;
      continue;
    }
    if (il < report.model.layers.size() &&
        report.model.layers[il].attention == AttentionKind::none) {
      ++n_fixed;
      continue;
    }
    const bool is_chosen = il >= report.model.layers.size() || report.model.layers[il].compressed;
    (is_chosen ? chosen : windows).push_back(il);
    if (is_chosen) continue;
    sizes.push_back(report.model.layers[il].window);
    in_chunks = report.model.layers[il].attention == AttentionKind::chunked;
  }
  std::string text;
  if (!chosen.empty()) text += lines_of_layers(report, chosen, "kept", colour);
  if (n_fixed > 0) {
    text += line(text.empty() ? "kept" : "",
                 fmt::format("a state of fixed size in {}",
                             plural(n_fixed, text.empty() ? "layer" : "other layer")),
                 colour);
  }
  if (n_shared > 0) {
    text += line(text.empty() ? "kept" : "",
                 fmt::format("{} {} rows of others", plural(n_shared, "more layer"),
                             n_shared == 1 ? "reads" : "read"),
                 colour);
  }
  if (windows.empty()) return text;
  const bool has_budget = policy_info(report.session.kv.name).has_budget;
  return text + line(text.empty() ? "kept" : "",
                     fmt::format("{} more {} {} of {} rows{}", windows.size(),
                                 windows.size() == 1 ? "layer has" : "layers have",
                                 in_chunks ? "chunks" : "windows", format_range(sizes),
                                 has_budget ? fmt::format(": a budget touches {} of {} layers",
                                                          chosen.size(), n_layer)
                                            : ""),
                     colour);
}

// "snapkv: 1024 rows kept, window 16, kernel 15, max pooling (--kv-window, --kv-kernel: as the
// model's file says)"
std::string policy_line(const RunReport& r, bool colour) {
  std::string text = fmt::format("{}: {}", r.session.kv.name, describe_policy(r.session.kv));
  std::string flags;
  for (const std::string& name : r.params_of_model) {
    const PolicyParam& param = *policy_info(r.session.kv.name).find(name);
    flags += (flags.empty() ? "" : ", ") + flag_of(param.option);
  }
  if (!flags.empty()) text += fmt::format(" ({}: as the model's file says)", flags);
  return line("policy", text, colour);
}

std::string part_line(const SessionStats& s, bool colour) {
  const auto share = [&](double seconds) {
    return s.prefill_seconds > 0 ? 100 * seconds / s.prefill_seconds : 0.0;
  };
  return line(
      "prefill is",
      fmt::format("{:.1f}% pack, {:.1f}% linear, {:.1f}% attention, {:.2f}% score, "
                  "{:.2f}% gather",
                  share(s.pack_seconds), share(s.linear_seconds), share(s.attention_seconds),
                  share(s.score_seconds), share(s.gather_seconds)),
      colour);
}

std::string recompress_line(const RunReport& r, bool colour) {
  const SessionStats& s = r.at_end;
  const double share = s.decode_seconds > 0 ? 100 * s.recompress_seconds / s.decode_seconds : 0.0;
  return line("again",
              fmt::format("compressed {} while decoding (--kv-decode-limit {}), {:.1f}% of its "
                          "time; {} of queries kept for it",
                          plural(s.n_recompressed, "time"), r.session.kv_decode_limit, share,
                          format_bytes(s.query_bytes)),
              colour);
}

Json sampler_json(const SamplerConfig& config) {
  Json json = Json::object();
  for (const OptionInfo& info : sampler_option_table().infos()) {
    std::visit([&](const auto& value) { json[info.name] = value; },
               sampler_option_table().get(config, info.name));
  }
  Json& biases = json["logit_bias"] = Json::array();
  for (const auto& [id, bias] : config.logit_bias) {
    biases.push_back({{"id", id}, {"bias", std::isfinite(bias) ? Json(bias) : Json("-inf")}});
  }
  return json;
}

Json settings_json(const RunReport& r) {
  Json kv = eval::policy_json(r.session.kv);
  kv["from_model"] = r.params_of_model;
  kv["memory"] = r.session.kv_memory;
  kv["decode_limit"] = r.session.kv_decode_limit;
  kv["type"] = snapkv::name(r.session.kv_type);
  return {
      {"n_ctx", r.n_ctx},
      {"n_predict", r.limits.max_tokens},
      {"ignore_eos", r.limits.ignore_eos},
      {"stops", r.limits.stops},
      {"kv", kv},
      {"chunk", r.session.chunk},
      {"memory_limit", r.session.memory_limit},
      {"spill_dir", r.session.spill_dir},
      {"sampler", sampler_json(r.sampler)},
      {"grammar", r.grammar ? Json(r.grammar->source()) : Json()},
  };
}

Json timings_json(const RunReport& r) {
  const SessionStats& s = r.at_end;
  Json json = {
      {"load_seconds", r.load_seconds},
      {"prefill_seconds", s.prefill_seconds},
      {"prefill_tokens_per_second", rate(s.n_prompt, s.prefill_seconds)},
      {"first_token_seconds", nullptr},
      {"decode_steps", s.n_decoded},
      {"decode_seconds", s.decode_seconds},
      {"decode_tokens_per_second", rate(s.n_decoded, s.decode_seconds)},
      {"recompress_seconds", s.recompress_seconds},
      {"guess_seconds", s.guess_seconds},
      {"prefill_parts_seconds",
       {{"pack", s.pack_seconds},
        {"linear", s.linear_seconds},
        {"attention", s.attention_seconds},
        {"score", s.score_seconds},
        {"gather", s.gather_seconds}}},
  };
  if (r.first_token_seconds) json["first_token_seconds"] = *r.first_token_seconds;
  if (r.session.draft != Draft::off) {
    json["drafted"] = r.generation.n_drafted;
    json["accepted"] = r.generation.n_accepted;
  }
  return json;
}

// Returns null when prefill did not finish.
Json kv_json(const RunReport& r) {
  if (!r.after_prefill) return nullptr;
  const SessionStats& s = *r.after_prefill;
  Json layers = Json::array();
  for (const SessionStats::Layer& layer : s.layers) {
    layers.push_back({{"total", layer.n_total}, {"kept", layer.n_kept}});
  }
  return {
      {"bytes_full", s.kv_bytes_full},
      {"bytes_peak", s.kv_bytes_peak},
      {"bytes_after_compression", s.kv_bytes_used},
      {"compression", s.compression()},
      {"bytes_full_at_end", r.at_end.kv_bytes_full},
      {"bytes_at_end", r.at_end.kv_bytes_used},
      {"bytes_allocated_at_end", r.at_end.kv_bytes},
      {"recompressed", r.at_end.n_recompressed},
      {"query_bytes", r.at_end.query_bytes},
      {"history_bytes", r.at_end.history_bytes},
      {"draft_bytes", r.at_end.draft_bytes},
      {"layers", layers},
  };
}

}  // namespace

size_t peak_rss() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return static_cast<size_t>(usage.ru_maxrss);
#else
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
#endif
}

std::string summary(const RunReport& r, bool parts, bool colour) {
  const SessionStats& end = r.at_end;
  const auto row = [](const std::string& what, double seconds, const std::string& speed) {
    return fmt::format("{:<16}{:>10}   {}", what, format_seconds(seconds), speed);
  };
  std::string text;
  if (r.misses_template) {
    text +=
        line("template",
             "the model has a chat template, and the prompt was read without it: --chat", colour);
  }
  if (r.continues_text) {
    text += line("template",
                 "none, as a base model: it continues the text, and answers no messages", colour);
  }
  if (r.n_loaded > 0) {
    text +=
        line("continues", fmt::format("a saved cache of {}", plural(r.n_loaded, "token")), colour);
  }
  if (!r.after_prefill) {
    text += line("prompt",
                 row(plural(r.n_prompt, "token"), r.cancelled_after_seconds, stop_note(r)), colour);
  } else {
    text += line("prompt",
                 row(plural(r.n_prompt, "token"), end.prefill_seconds,
                     r.n_stored > 0 ? fmt::format("{} of them from the store", r.n_stored)
                                    : format_rate(end.n_prompt, end.prefill_seconds)),
                 colour);
    if (parts) text += part_line(end, colour);
    text += line(
        "answer",
        row(plural(std::ssize(r.generation.ids), "token"), end.decode_seconds,
            fmt::format("{}   {}", format_rate(end.n_decoded, end.decode_seconds), stop_note(r))),
        colour);
    if (r.generation.n_drafted > 0) {
      text += line("guessed",
                   fmt::format("{}, {} of them right", plural(r.generation.n_drafted, "token"),
                               r.generation.n_accepted),
                   colour);
    }
    if (r.first_token_seconds) {
      text += line("first token", row("", *r.first_token_seconds, "from the start of the prompt"),
                   colour);
    }
    text += policy_line(r, colour);
    if (r.session.kv_memory > 0) {
      text += line("budget", describe_memory_budget(r.session), colour);
    }
    text += kept_lines(r, colour);
    const SessionStats& kv = *r.after_prefill;
    text += line("KV cache",
                 fmt::format("{} full, {} peak during prefill, {} after compression ({:.1f}x)",
                             format_bytes(kv.kv_bytes_full), format_bytes(kv.kv_bytes_peak),
                             format_bytes(kv.kv_bytes_used), kv.compression()),
                 colour);
    if (end.history_bytes > 0) {
      text += line("all rows",
                   fmt::format("{}, which {}", format_bytes(end.history_bytes),
                               r.session.draft == Draft::self ? "check guesses of the kept ones"
                                                              : "later turns read"),
                   colour);
    }
    if (end.draft_bytes > 0) {
      text += line("draft model", fmt::format("{} of its own cache", format_bytes(end.draft_bytes)),
                   colour);
    }
    if (end.query_bytes > 0) text += recompress_line(r, colour);
  }
  if (r.has_control) {
    text += line("template",
                 "not used: the prompt holds control tokens of its own; --chat makes it a message",
                 colour);
  }
  text += line("memory",
               fmt::format("{} peak RSS, loaded in {}", format_bytes(peak_rss()),
                           format_seconds(r.load_seconds)),
               colour);
  return text;
}

std::string to_json(const RunReport& r) {
  Json json = {
      {"model",
       {{"path", r.model.path},
        {"name", r.model.name},
        {"architecture", r.model.architecture},
        {"file_type", r.model.file_type},
        {"n_params", r.model.n_params},
        {"backend", r.backend}}},
      {"prompt_tokens", r.n_prompt},
      {"loaded_tokens", r.n_loaded},
      {"chat", r.as_chat},
      {"misses_chat_template", r.misses_template},
      {"text", r.generation.text},
      {"tokens", r.generation.ids},
      {"stop_reason", name(r.generation.stop_reason)},
      {"stop", r.generation.stop},
      {"settings", settings_json(r)},
      {"timings", timings_json(r)},
      {"kv", kv_json(r)},
      {"peak_rss_bytes", peak_rss()},
  };
  if (r.sources) json["sources"] = sources_json(*r.sources);
  if (r.shortened) {
    json["long"] = long_documents::long_json(r.document, r.shortened->plan, r.shortened->answers,
                                             r.shortened->condensed);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace snapkv::cli
