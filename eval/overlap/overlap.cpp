// SPDX-License-Identifier: MIT
#include "eval/overlap/overlap.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "eval/common/haystack.h"
#include "eval/overlap/prompt.h"

namespace snapkv::eval {
namespace {

/// The queries whose attention is measured, and the positions [begin, end) of the keys.
struct ProbedRange {
  AttentionProbe::Range queries;
  AttentionProbe::Range columns;
};

Attention mean_attention(const AttentionProbe::Report& report, const ProbedRange& range,
                         int64_t n_head_kv) {
  const int64_t n_group = report.n_head / n_head_kv;
  const int64_t n_columns = range.columns.end - range.columns.begin;
  const int64_t n_queries = range.queries.end - range.queries.begin;
  const float factor = 1.0f / static_cast<float>(n_queries * n_group);
  Attention attention(static_cast<size_t>(n_head_kv),
                      std::vector<float>(static_cast<size_t>(n_columns), 0.0f));
  for (int64_t h = 0; h < report.n_head; ++h) {
    const float* sums = report.sums.data() + h * report.n_keys + range.columns.begin;
    std::vector<float>& mean = attention[static_cast<size_t>(h / n_group)];
    for (size_t j = 0; j < mean.size(); ++j) mean[j] += sums[j] * factor;
  }
  return attention;
}

using LayerFn = std::function<void(const std::vector<Attention>& ranges)>;

/// Measures the attention of all ranges in one prefill, and calls `layer` for one layer after
/// another.
void probe_layers(const RunOptions& run, const std::vector<int32_t>& tokens,
                  const std::vector<ProbedRange>& ranges, const LayerFn& layer) {
  std::vector<Attention> found(ranges.size());
  size_t n_found = 0;
  AttentionProbe probe;
  for (const ProbedRange& r : ranges) probe.ranges.push_back(r.queries);
  probe.report = [&](const AttentionProbe::Report& report) {
    found[report.range] =
        mean_attention(report, ranges[report.range], run.model->info().layers[report.il].n_head_kv);
    if (++n_found < ranges.size()) return;
    layer(found);
    n_found = 0;
  };
  Session session(run.model, run.configurations.front());
  session.prefill(tokens, {.progress = run.prefill_progress, .probe = &probe});
}

std::vector<size_t> top_columns(const std::vector<float>& attention, double p) {
  std::vector<size_t> order(attention.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return attention[a] > attention[b]; });
  // A share that was written in decimal may come out just below a whole number of columns.
  const double share = p * static_cast<double>(attention.size()) * (1 + 1e-12);
  order.resize(std::clamp<size_t>(static_cast<size_t>(share), 1, attention.size()));
  return order;
}

Json to_json(const Coverage& c) {
  Json json = {{"overlap", c.overlap}, {"hit", nullptr}, {"n_used", c.n_used}};
  if (c.hit) json["hit"] = *c.hit;
  return json;
}

// ---------------------------------------------------------------- records

std::string overlap_id(const OverlapOptions& o, const char* part, int sample) {
  const std::string source = o.random_tokens ? "random tokens" : haystack_id(o.haystack);
  std::string id = fmt::format("overlap {} length {} p {} theta {} sample {} seed {} {}", part,
                               o.length, o.p, o.theta, sample, o.seed, source);
  if (std::string_view(part) == "questions") {
    return id + fmt::format(" window {} answer {}", o.question_window, o.n_answer);
  }
  return id + fmt::format(" windows {}+{} of {} {}", o.n_windows, o.n_gen_windows, o.window_length,
                          o.continue_text ? "text" : "greedy");
}

Json new_record(const RunOptions& run, const OverlapOptions& o, const char* part, int sample) {
  Json record = begin_record(run, overlap_key(run, o, part, sample), overlap_id(o, part, sample),
                             run.configurations.front());
  record.update({{"task", "overlap"},
                 {"part", part},
                 {"seed", o.seed},
                 {"sample", sample},
                 {"p", o.p},
                 {"theta", o.theta}});
  return record;
}

void add_text(const Model& model, const OverlapPassage& passage, const OverlapOptions& o,
              Json& record) {
  const std::span<const int32_t> all = passage.tokens;
  const auto prompt = all.first(static_cast<size_t>(passage.n_prompt));
  const auto rest = all.subspan(static_cast<size_t>(passage.n_prompt));
  record["n_prompt"] = passage.n_prompt;
  if (o.random_tokens) {  // random tokens may have no text
    record["prompt"] = prompt;
    record["continuation"] = rest;
  } else {
    record["prompt"] = model.detokenize(prompt);
    record["continuation"] = model.detokenize(rest);
  }
}

/// Observations A and B: the prompt's last windows, and the windows after the prompt.
Json windows_record(const RunOptions& run, const OverlapOptions& o, int sample) {
  const OverlapPassage passage = make_passage(run, o, sample);
  const int64_t n = passage.n_prompt, w = o.window_length;
  const AttentionProbe::Range before_all = {0, n - o.n_windows * w}, before_last = {0, n - w};
  if (before_all.end < 1) {
    fail(ErrorCode::kUsage,
         "the prompt has {} tokens, the {} windows of {} need more: make --length larger", n,
         o.n_windows, w);
  }
  std::vector<ProbedRange> ranges;
  for (int64_t i = o.n_windows; i > 0; --i) {
    ranges.push_back({{n - i * w, n - (i - 1) * w}, before_all});
  }
  ranges.push_back({{n, n + o.n_gen_windows * w}, before_all});  // everything generated
  ranges.push_back({{n - w, n}, before_last});
  for (int64_t i = 0; i < o.n_gen_windows; ++i) {
    ranges.push_back({{n + i * w, n + (i + 1) * w}, before_last});
  }
  Json layers = Json::array();
  probe_layers(run, passage.tokens, ranges, [&](const std::vector<Attention>& a) {
    const auto n_windows = static_cast<size_t>(o.n_windows);
    Json windows = Json::array(), generation = Json::array();
    for (size_t i = 0; i < n_windows; ++i) {
      windows.push_back(to_json(cover(a[i], a[n_windows], o.p, o.theta)));
    }
    for (size_t i = n_windows + 2; i < a.size(); ++i) {
      generation.push_back(to_json(cover(a[n_windows + 1], a[i], o.p, o.theta)));
    }
    layers.push_back({{"windows", windows}, {"generation", generation}});
  });
  Json record = new_record(run, o, "windows", sample);
  record["n_windows"] = o.n_windows;
  record["window_length"] = w;
  record["followed_by"] = o.continue_text ? "the text's own continuation"
                                          : "the model's greedy answer, line ends and end ignored";
  record["layers"] = std::move(layers);
  add_text(*run.model, passage, o, record);
  return record;
}

/// Joins parts of a prompt and generates the text after it.
OverlapPassage join(const RunOptions& run, const OverlapOptions& o,
                    std::initializer_list<const std::vector<int32_t>*> parts) {
  OverlapPassage passage;
  for (const std::vector<int32_t>* part : parts) {
    passage.tokens.insert(passage.tokens.end(), part->begin(), part->end());
  }
  passage.n_prompt = std::ssize(passage.tokens);
  continue_passage(run, o.n_answer, passage);
  return passage;
}

/// Observation C: two questions about one document, with the question last and with it first.
Json questions_record(const RunOptions& run, const OverlapOptions& o, int sample) {
  const OverlapDocument d = make_document(*run.model, o, o.length, sample);
  const int64_t n_doc = std::ssize(d.document), w = o.question_window;
  const AttentionProbe::Range document = {0, n_doc};
  const auto end_of = [](const OverlapPassage& p) { return std::ssize(p.tokens); };

  // The attention of each question's instruction and answer to the document.
  std::vector<std::vector<Attention>> asked[2];  // [question][layer][range]
  OverlapPassage passages[2];
  const AttentionProbe::Range compared = {0, std::max<int64_t>(1, n_doc - w)};
  for (size_t i = 0; i < 2; ++i) {
    const OverlapDocument::Question& q = d.questions[i];
    passages[i] = join(run, o, {&d.document, &q.question, &q.lead});
    const int64_t n = passages[i].n_prompt, end = end_of(passages[i]);
    const std::vector<ProbedRange> ranges = {
        {{n_doc, end}, document}, {{n - w, n}, compared}, {{n, end}, compared}};
    probe_layers(run, passages[i].tokens, ranges,
                 [&](const std::vector<Attention>& a) { asked[i].push_back(a); });
  }
  // The first question before the document: the same columns, shifted.
  const OverlapDocument::Question& q = d.questions[0];
  const OverlapPassage before = join(run, o, {&q.question, &d.document, &q.lead});
  const int64_t moved = std::ssize(q.question), n = before.n_prompt;
  const AttentionProbe::Range columns = {moved, moved + compared.end};
  std::vector<std::vector<Attention>> first;
  probe_layers(run, before.tokens, {{{n - w, n}, columns}, {{n, end_of(before)}, columns}},
               [&](const std::vector<Attention>& a) { first.push_back(a); });

  Json layers = Json::array();
  for (size_t il = 0; il < first.size(); ++il) {
    const auto covered = [&](const Attention& voting, const Attention& current) {
      return to_json(cover(voting, current, o.p, o.theta));
    };
    const std::vector<Attention>&one = asked[0][il], &two = asked[1][il];
    layers.push_back({{"other_question", covered(two[0], one[0])},
                      {"question_last", covered(one[1], one[2])},
                      {"question_first", covered(first[il][0], first[il][1])}});
  }
  Json record = new_record(run, o, "questions", sample);
  record["question_window"] = w;
  record["n_document"] = n_doc;
  record["questions"] = {d.questions[0].text, d.questions[1].text};
  const auto answer = [&](const OverlapPassage& p) {
    return run.model->detokenize(std::span(p.tokens).subspan(static_cast<size_t>(p.n_prompt)));
  };
  record["answers"] = {answer(passages[0]), answer(passages[1])};
  record["answer_question_first"] = answer(before);
  record["references"] = {d.questions[0].reference, d.questions[1].reference};
  record["layers"] = std::move(layers);
  record["prompt"] = d.text;
  return record;
}

}  // namespace

Coverage cover(const Attention& voting, const Attention& current, double p, double theta) {
  Coverage c;
  int64_t n_hit = 0;
  for (size_t g = 0; g < current.size(); ++g) {
    const std::vector<size_t> wanted = top_columns(current[g], p);
    std::vector<bool> selected(current[g].size(), false);
    for (const size_t j : top_columns(voting[g], p)) selected[j] = true;
    const auto n_both =
        std::count_if(wanted.begin(), wanted.end(), [&](size_t j) { return selected[j]; });
    c.overlap += static_cast<double>(n_both) / static_cast<double>(wanted.size());
    for (size_t j = 0; j < selected.size(); ++j) {
      if (!(static_cast<double>(current[g][j]) > theta)) continue;
      ++c.n_used;
      if (selected[j]) ++n_hit;
    }
  }
  c.overlap /= static_cast<double>(current.size());
  if (c.n_used > 0) c.hit = static_cast<double>(n_hit) / static_cast<double>(c.n_used);
  return c;
}

std::string overlap_key(const RunOptions& run, const OverlapOptions& o, const char* part,
                        int sample) {
  Item item;
  item.id = overlap_id(o, part, sample);
  item.limit = {
      std::string_view(part) == "windows" ? o.n_gen_windows * o.window_length : o.n_answer, false};
  return record_key(run, item, run.configurations.front());
}

void validate(const OverlapOptions& o) {
  const int64_t least = o.n_windows * o.window_length + o.window_length;
  if (o.length < least) {
    fail(ErrorCode::kUsage,
         "--length is {}: {} windows of {} tokens need {} or more, so that there is a prefix to "
         "look at",
         o.length, o.n_windows, o.window_length, least);
  }
  if (o.question_window > o.length / 4) {
    fail(ErrorCode::kUsage, "--question-window is {}, of a prompt of {} tokens; at most a quarter",
         o.question_window, o.length);
  }
}

int64_t longest_prompt(const OverlapOptions& o) {
  return o.length + std::max(o.n_gen_windows * o.window_length, o.n_answer);
}

void run_overlap(const RunOptions& run, const OverlapOptions& options, RecordFile& file) {
  struct Todo {
    const char* part;
    int sample;
  };
  std::vector<Todo> todo;
  for (int sample = 0; sample < options.n_samples; ++sample) {
    for (const char* part : {"windows", "questions"}) {
      if (options.random_tokens && std::string_view(part) == "questions") continue;
      if (!file.contains(overlap_key(run, options, part, sample))) {
        todo.push_back({part, sample});
      }
    }
  }
  for (size_t i = 0; i < todo.size(); ++i) {
    if (run.progress) run.progress(static_cast<int64_t>(i), std::ssize(todo));
    file.append(std::string_view(todo[i].part) == "windows"
                    ? windows_record(run, options, todo[i].sample)
                    : questions_record(run, options, todo[i].sample));
  }
}

}  // namespace snapkv::eval
