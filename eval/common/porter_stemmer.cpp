// SPDX-License-Identifier: MIT
#include "eval/common/porter_stemmer.h"

#include <libstemmer.h>

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace snapkv::eval {

std::string porter_stem(const std::string& word) {
  const bool plain =
      std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!plain || word.size() <= 2) return word;
  thread_local const std::unique_ptr<sb_stemmer, void (*)(sb_stemmer*)> stemmer(
      sb_stemmer_new("porter", nullptr), sb_stemmer_delete);
  SNAPKV_CHECK(stemmer != nullptr);
  const sb_symbol* stem =
      sb_stemmer_stem(stemmer.get(), reinterpret_cast<const sb_symbol*>(word.data()),
                      static_cast<int>(word.size()));
  SNAPKV_CHECK(stem != nullptr);
  return {reinterpret_cast<const char*>(stem),
          static_cast<size_t>(sb_stemmer_length(stemmer.get()))};
}

}  // namespace snapkv::eval
