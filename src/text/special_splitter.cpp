// SPDX-License-Identifier: MIT
#include "text/special_splitter.h"

#include <algorithm>

namespace snapkv {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocab& vocab) {
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string_view text = vocab.tokens[static_cast<size_t>(id)];
    const TokenType type = vocab.types[static_cast<size_t>(id)];
    const bool always = type == TokenType::kUserDefined;
    if (text.empty() || !(always || type == TokenType::kControl || type == TokenType::kUnknown)) {
      continue;
    }
    // Phi-3: all special tokens but these swallow the white space after them.
    const bool keeps = text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
    specials_.push_back({id, text, always, vocab.strip_after_special && !keeps});
  }
  std::stable_sort(specials_.begin(), specials_.end(), [](const Special& a, const Special& b) {
    return a.text.size() > b.text.size();
  });
  for (size_t i = 0; i < specials_.size(); ++i) {
    const std::string_view text = specials_[i].text;
    index_.emplace(text, i);
    auto& lengths = lengths_[static_cast<unsigned char>(text[0])];
    if (lengths.empty() || lengths.back() != text.size()) lengths.push_back(text.size());
  }
}

std::vector<const SpecialSplitter::Special*> SpecialSplitter::present(std::string_view text,
                                                                      bool parse_special) const {
  std::vector<bool> seen(specials_.size());
  for (size_t i = 0; i < text.size(); ++i) {
    for (const size_t length : lengths_[static_cast<unsigned char>(text[i])]) {
      const auto at = index_.find(text.substr(i, length));
      if (at != index_.end()) seen[at->second] = true;
    }
  }
  std::vector<const Special*> found;
  for (size_t i = 0; i < specials_.size(); ++i) {
    if (seen[i] && (parse_special || specials_[i].always)) found.push_back(&specials_[i]);
  }
  return found;
}

std::vector<SpecialSplitter::Fragment> SpecialSplitter::split(std::string_view text,
                                                              bool parse_special) const {
  std::vector<Fragment> fragments;
  if (!text.empty()) fragments.push_back({-1, text});
  for (const Special* special : present(text, parse_special)) {
    std::vector<Fragment> next;
    for (const Fragment& fragment : fragments) {
      std::string_view rest = fragment.text;
      size_t at = std::string_view::npos;
      while (fragment.token < 0 && (at = rest.find(special->text)) != std::string_view::npos) {
        if (at > 0) next.push_back({-1, rest.substr(0, at)});
        next.push_back({special->id, {}});
        rest.remove_prefix(at + special->text.size());
        while (special->strip && !rest.empty() && is_space(rest[0])) rest.remove_prefix(1);
      }
      if (fragment.token >= 0 || !rest.empty()) next.push_back({fragment.token, rest});
    }
    fragments = std::move(next);
  }
  return fragments;
}

}  // namespace snapkv
