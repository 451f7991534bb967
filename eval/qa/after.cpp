// SPDX-License-Identifier: MIT
#include "eval/qa/after.h"

#include <map>
#include <memory>

#include "base/error.h"

namespace snapkv::eval {

std::vector<QaQuestion> ask_after_others(std::vector<QaQuestion> questions, int64_t n) {
  std::map<const QaContext*, std::vector<std::shared_ptr<const QaQuestion>>> by_context;
  for (const QaQuestion& question : questions) {
    if (fills_gap(question)) {
      fail(ErrorCode::kUsage, "{}: {} fills a gap (field suffix): it can't follow other questions",
           question.place, question.id);
    }
    by_context[question.context.get()].push_back(std::make_shared<const QaQuestion>(question));
  }
  std::map<const QaContext*, size_t> n_seen;
  for (QaQuestion& question : questions) {
    const auto& all = by_context.at(question.context.get());
    if (std::ssize(all) <= n) {
      fail(ErrorCode::kUsage,
           "{}: {} is the text of {} questions: at least {} are needed to ask each after {} others",
           question.place, question.context->name, all.size(), n + 1, n);
    }
    const size_t place = n_seen[question.context.get()]++;
    for (int64_t i = 1; i <= n; ++i) {
      question.earlier.push_back(all[(place + static_cast<size_t>(i)) % all.size()]);
    }
  }
  return questions;
}

}  // namespace snapkv::eval
