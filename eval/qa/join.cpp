// SPDX-License-Identifier: MIT
#include "eval/qa/join.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

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
  const auto rank = [](const TitledText& text) { return std::pair(hash64(text.title), text.title); };
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

}  // namespace

std::vector<QaQuestion> join_texts(const std::vector<QaQuestion>& questions,
                                   const JoinOptions& options) {
  std::vector<QaQuestion> joined;
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
