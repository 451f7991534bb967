// SPDX-License-Identifier: MIT
#include "text/split_tokenizer.h"

namespace snapkv {

void SplitTokenizer::encode_fragments(std::span<const SpecialSplitter::Fragment> fragments,
                                      std::vector<int32_t>& out) const {
  bool after_special = true;  // as is the beginning
  for (const auto& fragment : fragments) {
    if (fragment.token >= 0) {
      out.push_back(fragment.token);
    } else {
      encode_fragment(fragment.text, after_special, out);
    }
    after_special = fragment.token >= 0;
  }
}

std::vector<int32_t> SplitTokenizer::encode(std::string_view text, bool add_special,
                                            bool parse_special) const {
  check_text_length(text);
  std::vector<int32_t> out;
  if (add_special && vocab_.special.add_bos) out.push_back(vocab_.special.bos);
  encode_fragments(splitter_.split(text, parse_special), out);
  if (add_special && vocab_.special.add_eos) out.push_back(vocab_.special.eos);
  return out;
}

std::vector<int32_t> SplitTokenizer::encode_chat(const RenderedChat& chat, bool add_bos) const {
  check_text_length(chat.text);
  const auto fragments = splitter_.split(chat.text, true, chat.input);
  std::vector<int32_t> out;
  const SpecialTokens& special = vocab_.special;
  const bool begins_with_bos = !fragments.empty() && fragments[0].token == special.bos;
  if (add_bos && special.add_bos && !begins_with_bos) out.push_back(special.bos);
  encode_fragments(fragments, out);
  return out;
}

}  // namespace snapkv
