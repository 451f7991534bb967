// SPDX-License-Identifier: MIT
#include "eval/overlap/prompt.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "eval/common/haystack.h"
#include "eval/needle/document.h"

namespace snapkv::eval {
namespace {

void append(std::vector<int32_t>& to, const std::vector<int32_t>& tokens) {
  to.insert(to.end(), tokens.begin(), tokens.end());
}

/// The ids that end an answer or contain a newline.
std::vector<size_t> ending_ids(const Model& model) {
  std::vector<size_t> ids;
  for (int64_t i = 0; i < model.info().n_vocab; ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (model.is_end_of_generation(id) || model.piece(id).find('\n') != std::string::npos) {
      ids.push_back(static_cast<size_t>(i));
    }
  }
  return ids;
}

}  // namespace

OverlapDocument make_document(const Model& model, const OverlapOptions& options, int64_t length,
                              int sample) {
  NeedleOptions needle;
  needle.n_facts = 2;
  needle.seed = options.seed;
  needle.haystack = options.haystack;
  constexpr double kDepth = 0.25;  // of the first fact, away from the beginning and the end
  NeedleDocument made = make_needle_document(model, needle, length, kDepth, sample);
  OverlapDocument d;
  d.text = std::move(made.text);
  d.document = model.tokenize(d.text, true, false);
  for (size_t i = 0; i < 2; ++i) {
    const NeedleDocument::Question& q = made.questions[i];
    d.questions[i] = {q.question + q.lead, model.tokenize(q.question, false, false),
                      model.tokenize(q.lead, false, false), q.answer};
    const int64_t total = std::ssize(d.document) + std::ssize(d.questions[i].question) +
                          std::ssize(d.questions[i].lead);
    if (total > length) {
      fail(ErrorCode::kUsage, "a length of {} tokens has no room for the question: {}", length,
           total);
    }
  }
  return d;
}

void continue_passage(const RunOptions& run, int64_t n, OverlapPassage& passage) {
  const std::vector<size_t> endings = ending_ids(*run.model);
  Session session(run.model, run.configurations.front());
  session.prefill(passage.tokens, {.progress = run.prefill_progress});
  for (int64_t i = 0; i < n; ++i) {
    if (run.cancelled()) fail(ErrorCode::kCancelled, "cancelled");
    std::vector<float> logits(session.logits().begin(), session.logits().end());
    for (const size_t id : endings) logits[id] = -std::numeric_limits<float>::infinity();
    const auto best = std::max_element(logits.begin(), logits.end());  // ties to the lower id
    const int32_t id = static_cast<int32_t>(best - logits.begin());
    passage.tokens.push_back(id);
    if (i + 1 < n) session.decode(id);
  }
}

OverlapPassage make_passage(const RunOptions& run, const OverlapOptions& options, int sample) {
  const int64_t n_more = options.n_gen_windows * options.window_length;
  const int64_t n_all = options.length + (options.continue_text ? n_more : 0);
  OverlapPassage passage;
  if (options.random_tokens) {
    Random random(options.seed * 1'000'003 + static_cast<uint64_t>(sample));
    const auto n_vocab = static_cast<size_t>(run.model->info().n_vocab);
    for (int64_t i = 0; i < n_all; ++i) {
      passage.tokens.push_back(static_cast<int32_t>(random.below(n_vocab)));
    }
  } else {
    const OverlapDocument d = make_document(*run.model, options, n_all, sample);
    passage.tokens = d.document;
    if (!options.continue_text) {
      append(passage.tokens, d.questions[0].question);
      append(passage.tokens, d.questions[0].lead);
    }
  }
  if (options.continue_text) {
    passage.n_prompt = std::ssize(passage.tokens) - n_more;
  } else {
    passage.n_prompt = std::ssize(passage.tokens);
    continue_passage(run, n_more, passage);
  }
  return passage;
}

}  // namespace snapkv::eval
