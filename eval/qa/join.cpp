// SPDX-License-Identifier: MIT
#include "eval/qa/join.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace snapkv::eval {
namespace {

// A text as it stands in a document, and the questions about it.
struct TitledText {
  std::string title, half, place;
  std::string text;  // below its title
  int64_t n_tokens = 0;
  std::vector<const QaQuestion*> questions;
};

// The texts of documents: those of the first `n_asked` are asked about.
struct JoinedDocument {
  std::vector<const TitledText*> texts;
  int64_t n_tokens = 0;
  size_t n_asked = 0;
};

TitledText make_titled_text(const QaQuestion& question, const JoinOptions& options) {
  if (question.title.empty()) {
    fail(ErrorCode::kUsage, "{}: field title is missing: questions about joined texts name theirs",
         question.place);
  }
  TitledText text{question.title, question.half, question.place, "", 0, {}};
  text.text = fmt::format("# {}\n\n{}\n\n", question.title, question.context->text);
  text.n_tokens = options.count_tokens(text.text);
  if (text.n_tokens > options.n_tokens) {
    fail(ErrorCode::kUsage, "{}: {} has {} tokens, a document of joined texts may have {}",
         question.place, question.context->name, text.n_tokens, options.n_tokens);
  }
  return text;
}

void check_same_text(const QaQuestion& question, const TitledText& text) {
  if (question.title != text.title) {
    fail(ErrorCode::kUsage, "{}: field title is '{}', but '{}' in {}, about the same text",
         question.place, question.title, text.title, text.place);
  }
  if (question.half != text.half) {
    fail(ErrorCode::kUsage,
         "{}: field half is '{}', but '{}' in {}: documents of two halves may not share a text",
         question.place, question.half, text.half, text.place);
  }
}

// The texts by half, in the order in which documents have them.
std::map<std::string, std::vector<TitledText>> titled_texts(
    const std::vector<QaQuestion>& questions, const JoinOptions& options) {
  std::map<const QaContext*, TitledText> by_context;
  std::map<std::string, std::string> places;  // by title
  for (const QaQuestion& question : questions) {
    const auto found = by_context.find(question.context.get());
    if (found != by_context.end()) {
      check_same_text(question, found->second);
      found->second.questions.push_back(&question);
      continue;
    }
    const auto [before, is_new] = places.emplace(question.title, question.place);
    if (!is_new) {
      fail(ErrorCode::kUsage, "{}: field title: '{}' is the title of another text in {}",
           question.place, question.title, before->second);
    }
    TitledText text = make_titled_text(question, options);
    text.questions.push_back(&question);
    by_context.emplace(question.context.get(), std::move(text));
  }
  std::map<std::string, std::vector<TitledText>> halves;
  for (auto& [context, text] : by_context) halves[text.half].push_back(std::move(text));
  const auto rank = [](const TitledText& text) {
    return std::pair(hash64(text.title), text.title);
  };
  for (auto& [half, texts] : halves) {
    std::sort(texts.begin(), texts.end(),
              [&](const TitledText& a, const TitledText& b) { return rank(a) < rank(b); });
  }
  return halves;
}

std::vector<JoinedDocument> fill_documents(const std::vector<TitledText>& texts,
                                           const JoinOptions& options) {
  int64_t n_all = 0;
  for (const TitledText& text : texts) n_all += text.n_tokens;
  if (n_all < options.n_tokens) {
    const std::string half = texts[0].half.empty() ? "" : " of half " + texts[0].half;
    fail(ErrorCode::kUsage, "the texts{} have {} tokens together, too few for a document of {}",
         half, n_all, options.n_tokens);
  }
  std::vector<JoinedDocument> documents;
  for (const TitledText& text : texts) {
    if (documents.empty() || documents.back().n_tokens + text.n_tokens > options.n_tokens) {
      documents.emplace_back();
    }
    documents.back().texts.push_back(&text);
    documents.back().n_tokens += text.n_tokens;
    ++documents.back().n_asked;
  }
  // no text is there twice: all of them do not fit into one document
  for (const TitledText& text : texts) {
    JoinedDocument& last = documents.back();
    const bool is_there =
        std::find(last.texts.begin(), last.texts.end(), &text) != last.texts.end();
    if (is_there || last.n_tokens + text.n_tokens > options.n_tokens) break;
    last.texts.push_back(&text);
    last.n_tokens += text.n_tokens;
  }
  return documents;
}

// A text with gaps, which begins as the context of each of its questions does.
struct TextWithGaps {
  std::string title, half, place, text;
  int64_t n_tokens = 0;                      // of the text up to the last gap, below its title
  std::vector<const QaQuestion*> questions;  // the longest context first
};

std::vector<TextWithGaps> texts_with_gaps(const std::vector<QaQuestion>& questions,
                                          const JoinOptions& options) {
  std::map<std::pair<uint64_t, std::string>, TextWithGaps> by_title;  // in the documents' order
  for (const QaQuestion& question : questions) {
    if (question.title.empty()) {
      fail(ErrorCode::kUsage, "{}: field title is missing: joined texts are told apart by it",
           question.place);
    }
    TextWithGaps& text = by_title[{hash64(question.title), question.title}];
    if (text.questions.empty()) {
      text.title = question.title;
      text.half = question.half;
      text.place = question.place;
    }
    const std::string& context = question.context->text;
    const std::string& longer = context.size() > text.text.size() ? context : text.text;
    if (!longer.starts_with(context) || !longer.starts_with(text.text)) {
      fail(ErrorCode::kUsage, "{}: field title: '{}' is the title of another text in {}",
           question.place, question.title, text.place);
    }
    if (question.half != text.half) {
      fail(ErrorCode::kUsage,
           "{}: field half is '{}', but '{}' in {}: documents of two halves may not share a text",
           question.place, question.half, text.half, text.place);
    }
    text.text = longer;
    text.questions.push_back(&question);
  }
  std::vector<TextWithGaps> texts;
  for (auto& [rank, text] : by_title) {
    std::stable_sort(text.questions.begin(), text.questions.end(),
                     [](const QaQuestion* a, const QaQuestion* b) {
                       return a->context->text.size() > b->context->text.size();
                     });
    text.n_tokens = options.count_tokens(fmt::format("# {}\n\n{}\n\n", text.title, text.text));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string rest_title(const TextWithGaps& text) {
  return fmt::format("# {}, continued\n\n", text.title);
}

// The texts that stand before the rest of text `i`: those that follow it and fit.
std::string texts_between(const std::vector<TextWithGaps>& texts, size_t i,
                          const JoinOptions& options) {
  const TextWithGaps& text = texts[i];
  int64_t n_suffix = 0;
  for (const QaQuestion* question : text.questions) {
    n_suffix = std::max(n_suffix, options.count_tokens(question->gap.suffix));
  }
  int64_t n_left =
      options.n_tokens - text.n_tokens - options.count_tokens(rest_title(text)) - n_suffix;
  if (n_left < 0) {
    fail(ErrorCode::kUsage, "{}: {} has {} tokens, a document of joined texts may have {}",
         text.place, text.title, options.n_tokens - n_left, options.n_tokens);
  }
  std::string between;
  for (size_t k = 1; k < texts.size(); ++k) {
    const TextWithGaps& other = texts[(i + k) % texts.size()];
    const bool tells =
        std::any_of(text.questions.begin(), text.questions.end(), [&](const QaQuestion* question) {
          return !question->gap.name.empty() &&
                 other.text.find(question->gap.name) != other.text.npos;
        });
    if (tells || other.half != text.half || other.n_tokens > n_left) continue;
    between += fmt::format("# {}\n\n{}\n\n", other.title, other.text);
    n_left -= other.n_tokens;
  }
  if (n_left <= options.n_tokens / 2) return between;
  fail(ErrorCode::kUsage,
       "{}: with the other texts{} '{}' makes less than half of a document of {} tokens",
       text.place, text.half.empty() ? "" : " of half " + text.half, text.title, options.n_tokens);
}

// The question about its text with `between` before the rest.
QaQuestion join_gap(const TextWithGaps& text, const QaQuestion& question,
                    const std::string& between) {
  QaQuestion joined = question;
  const std::string title = fmt::format("# {}\n\n", text.title);
  const std::string& whole = question.context->text;
  const size_t rest = question.gap.rest;
  auto context = std::make_shared<QaContext>();
  const std::string inserted = rest == 0 ? between + title : "\n" + between + rest_title(text);
  context->text = (rest == 0 ? "" : title) + whole.substr(0, rest) + inserted + whole.substr(rest);
  context->name = fmt::format("'{}' with other texts before its rest", text.title);
  context->fingerprint = hash64(context->text);
  const size_t n_before =
      question.gap.defined < rest ? title.size() : inserted.size() + title.size();
  joined.gap.defined += rest == 0 ? inserted.size() : n_before;
  joined.gap.rest = context->text.size() - (whole.size() - rest);
  joined.context = std::move(context);
  return joined;
}

void join_gaps(const std::vector<QaQuestion>& questions, const JoinOptions& options,
               std::vector<QaQuestion>& joined) {
  const std::vector<TextWithGaps> texts = texts_with_gaps(questions, options);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string between = texts_between(texts, i, options);
    for (const QaQuestion* question : texts[i].questions) {
      joined.push_back(join_gap(texts[i], *question, between));
    }
  }
}

}  // namespace

std::vector<QaQuestion> join_texts(const std::vector<QaQuestion>& all, const JoinOptions& options) {
  std::vector<QaQuestion> joined, questions, gaps;
  for (const QaQuestion& question : all) {
    (fills_gap(question) ? gaps : questions).push_back(question);
  }
  join_gaps(gaps, options, joined);
  for (const auto& [half, texts] : titled_texts(questions, options)) {
    for (const JoinedDocument& document : fill_documents(texts, options)) {
      auto context = std::make_shared<QaContext>();
      for (const TitledText* text : document.texts) context->text += text->text;
      context->name =
          fmt::format("{} texts from '{}' on", document.texts.size(), document.texts[0]->title);
      context->fingerprint = hash64(context->text);
      for (size_t i = 0; i < document.n_asked; ++i) {
        for (const QaQuestion* question : document.texts[i]->questions) {
          joined.push_back(*question);
          joined.back().context = context;
          joined.back().question =
              fmt::format("In \"{}\": {}", question->title, question->question);
        }
      }
    }
  }
  return joined;
}

}  // namespace snapkv::eval
