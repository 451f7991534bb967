// SPDX-License-Identifier: MIT
#include "eval/fidelity/plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace snapkv::eval {
namespace {

// The tokens that a model puts before a text. Some models also end texts with a token, which must
// not happen here.
std::vector<int32_t> tokens_before_text(const Model& model) {
  const std::vector<int32_t> with = model.tokenize("a", true, false);
  const std::vector<int32_t> without = model.tokenize("a", false, false);
  const auto at = std::search(with.begin(), with.end(), without.begin(), without.end());
  return {with.begin(), at};
}

// Where the passages that need `n` of a text's tokens begin, spread from the first place to the
// last.
std::vector<int64_t> beginnings(int64_t n_tokens, int64_t n, int n_samples) {
  const int64_t last = n_tokens - n;
  std::vector<int64_t> firsts;
  for (int64_t sample = 0; sample < n_samples; ++sample) {
    firsts.push_back(n_samples == 1 ? 0 : sample * last / (n_samples - 1));
  }
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  return firsts;
}

void check_context(const Model& model, const FidelityOptions& options) {
  for (const int64_t length : options.lengths) {
    // The last true token is only compared with, never fed.
    if (length + options.n_continue <= model.info().n_ctx_train) continue;
    fail(ErrorCode::kContextExceeded,
         "a prompt of {} tokens and {} that follow exceed the model's context of {}", length,
         options.n_continue, model.info().n_ctx_train);
  }
}

// Adds each text once, even if several files have it.
void add_texts(const Model& model, const std::vector<TextFile>& texts, FidelityPlan& plan) {
  for (const TextFile& text : texts) {
    const std::string print = fmt::format("{:016x}", hash64(text.content));
    const auto same = std::find_if(plan.texts.begin(), plan.texts.end(),
                                   [&](const TokenizedText& t) { return t.fingerprint == print; });
    if (same != plan.texts.end()) {
      plan.remarks.push_back(
          fmt::format("{} is the same text as {}: used once", text.path, same->path));
      continue;
    }
    plan.texts.push_back({text.path, print, model.tokenize(text.content, false, false)});
  }
}

void add_passages(size_t text, int64_t length, int n_samples, FidelityPlan& plan) {
  const std::string& path = plan.texts[text].path;
  const int64_t n_tokens = std::ssize(plan.texts[text].tokens), needed = plan.n_needed(length);
  if (n_tokens < needed) {
    plan.remarks.push_back(
        fmt::format("{} is not used for prompts of {} tokens: it has {}, {} needed", path, length,
                    n_tokens, needed));
    return;
  }
  const std::vector<int64_t> firsts = beginnings(n_tokens, needed, n_samples);
  if (std::ssize(firsts) < n_samples) {
    plan.remarks.push_back(
        fmt::format("{} has {} passages of {} tokens, not {}: they would be equal", path,
                    firsts.size(), needed, n_samples));
  }
  for (const int64_t first : firsts) plan.passages.push_back({text, length, first});
}

[[noreturn]] void fail_too_short(int64_t length, const FidelityPlan& plan) {
  const auto longest = std::max_element(plan.texts.begin(), plan.texts.end(),
                                        [](const TokenizedText& a, const TokenizedText& b) {
                                          return a.tokens.size() < b.tokens.size();
                                        });
  fail(ErrorCode::kUsage,
       "no text is long enough: a prompt of {} tokens and {} that follow need {} of a text, the "
       "longest, {}, has {}",
       length, plan.n_continue + 1, plan.n_needed(length), longest->path, longest->tokens.size());
}

}  // namespace

std::vector<int32_t> FidelityPlan::prompt(const Passage& passage) const {
  std::vector<int32_t> all = begin;
  const auto from = texts[passage.text].tokens.begin() + passage.first;
  all.insert(all.end(), from, from + passage.length - std::ssize(begin));
  return all;
}

std::vector<int32_t> FidelityPlan::continuation(const Passage& passage) const {
  const auto from =
      texts[passage.text].tokens.begin() + passage.first + passage.length - std::ssize(begin);
  return {from, from + n_continue + 1};
}

std::string FidelityPlan::id(const Passage& passage) const {
  return fmt::format("fidelity text {} from {} length {}", texts[passage.text].fingerprint,
                     passage.first, passage.length);
}

int64_t FidelityPlan::n_tokens() const {
  int64_t n = 0;
  for (const TokenizedText& text : texts) n += std::ssize(text.tokens);
  return n;
}

int64_t FidelityPlan::n_used() const {
  int64_t n = 0;
  for (size_t t = 0; t < texts.size(); ++t) {
    std::vector<std::pair<int64_t, int64_t>> parts;
    for (const Passage& p : passages) {
      if (p.text != t) continue;
      parts.emplace_back(p.first, end(p));
    }
    std::sort(parts.begin(), parts.end());
    int64_t counted = 0;  // tokens before this one are counted
    for (const auto& [first, last] : parts) {
      n += std::max<int64_t>(0, last - std::max(first, counted));
      counted = std::max(counted, last);
    }
  }
  return n;
}

int64_t FidelityPlan::end(const Passage& passage) const {
  return passage.first + n_needed(passage.length);
}

int64_t FidelityPlan::n_needed(int64_t length) const {
  return length - std::ssize(begin) + n_continue + 1;
}

FidelityPlan plan_fidelity(const Model& model, const std::vector<TextFile>& texts,
                           const FidelityOptions& options) {
  check_context(model, options);
  FidelityPlan plan;
  plan.n_continue = options.n_continue;
  plan.begin = tokens_before_text(model);
  add_texts(model, texts, plan);
  std::vector<int64_t> lengths = options.lengths;
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  for (const int64_t length : lengths) {
    if (length <= std::ssize(plan.begin)) {
      fail(ErrorCode::kUsage, "a prompt of {} tokens has none of the text: {} are the model's own",
           length, plan.begin.size());
    }
    for (size_t t = 0; t < plan.texts.size(); ++t) add_passages(t, length, options.n_samples, plan);
  }
  if (plan.passages.empty()) fail_too_short(lengths.front(), plan);
  return plan;
}

}  // namespace snapkv::eval
