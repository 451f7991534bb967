// SPDX-License-Identifier: MIT
// Chooses the tokenizer by the file's metadata; one file per kind.
#include "text/tokenizer.h"

#include "base/error.h"
#include "format/gguf.h"
#include "text/tokenizer_spm.h"

namespace snapkv {

std::unique_ptr<Tokenizer> Tokenizer::from_gguf(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string& kind = file.get_string(kKey);
  if (kind == "llama") return std::make_unique<SpmTokenizer>(file);
  fail(ErrorCode::kBadModel,
       "'{}': metadata key '{}' is '{}', which is not supported; supported: "
       "'llama'",
       file.path(), kKey, kind);
}

}  // namespace snapkv
