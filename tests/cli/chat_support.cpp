// SPDX-License-Identifier: MIT
#include "chat_support.h"

#include <algorithm>

namespace snapkv::test {

std::string plain_template(const std::string& at_end) {
  return "{% for m in messages %}{{ m.content }}{% if not loop.last %}{{ '\\n' }}{% endif %}"
         "{% endfor %}" +
         at_end;
}

std::vector<std::string> chat_args(const std::vector<std::string>& more,
                                   const std::string& template_text) {
  std::vector<std::string> args = {
      "chat", "-m", needle_model(), "--temp", "0", "--chat-template", template_text};
  if (std::find(more.begin(), more.end(), "-n") == more.end()) {
    args.insert(args.end(), {"-n", "7"});
  }
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::string facts_file() {
  const std::string prompt = rome_prompt(6);
  return make_file("facts.txt", prompt.substr(0, prompt.find("\nQuestion: ")));
}

std::string question() {
  return "Question: What is the secret number of Rome?\\\nAnswer: The secret number of Rome is\n";
}

}  // namespace snapkv::test
