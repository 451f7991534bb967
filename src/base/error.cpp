// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <vector>

namespace snapkv {

std::string Error::message(const std::function<std::string(std::string_view)>& shown) const {
  const std::string text = what();
  std::string named;
  size_t done = 0;
  for (const Mention& mention : mentions()) {
    named.append(text, done, mention.begin - done);
    named += shown(mention.option);
    done = mention.begin + mention.size;
  }
  return named.append(text, done);
}

Error Error::prefixed(const std::string& text) const {
  std::vector<Mention> moved = mentions();
  for (Mention& mention : moved) mention.begin += text.size();
  return {code_, text + what(), std::move(moved)};
}

Error marked_error(ErrorCode code, std::string_view message) {
  std::string text;
  std::vector<Error::Mention> mentions;
  while (!message.empty()) {
    const size_t mark = message.find('\x01');
    const size_t middle = message.find('\x02', mark), end = message.find('\x03', middle);
    if (end == std::string_view::npos) break;
    text.append(message.substr(0, mark));
    const std::string_view shown = message.substr(middle + 1, end - middle - 1);
    mentions.push_back(
        {std::string(message.substr(mark + 1, middle - mark - 1)), text.size(), shown.size()});
    text.append(shown);
    message.remove_prefix(end + 1);
  }
  text.append(message);
  return {code, text, std::move(mentions)};
}

}  // namespace snapkv
