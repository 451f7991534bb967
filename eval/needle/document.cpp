// SPDX-License-Identifier: MIT
#include "eval/needle/document.h"

#include <fmt/core.h>

namespace snapkv::eval {

NeedleDocument make_needle_document(const Model& model, NeedleOptions options, int64_t length,
                                    double depth, int sample) {
  // The generator leaves room for the question about the first fact; another name may need more
  // tokens.
  constexpr int64_t kSpare = 24;
  options.kind = NeedleKind::multi_key;
  const NeedleText made = make_needle_text(model, options, length - kSpare, depth, sample);
  NeedleDocument document;
  document.text = made.prompt.context;
  for (const Json& fact : made.details.at("facts")) {
    // "The secret number of Rome is 48213."
    const std::string text = fact.at("text");
    const size_t last = text.rfind(' ');
    const std::string statement = text.substr(0, last);
    const std::string subject = statement.substr(4, statement.size() - 4 - 3);  // "The ", " is"
    document.questions.push_back(
        {fmt::format("\nQuestion: What is the {}?{}", subject, after_question(options.format)),
         "Answer: " + statement, text.substr(last + 1, text.size() - last - 2)});
  }
  return document;
}

}  // namespace snapkv::eval
