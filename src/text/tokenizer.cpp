// SPDX-License-Identifier: MIT
// Chooses the tokenizer by the file; one file per kind.
#include "snapkv/tokenizer.h"

#include "base/error.h"
#include "format/gguf.h"
#include "text/tokenizer_bpe.h"
#include "text/tokenizer_spm.h"

namespace snapkv {

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& path) {
  return from_gguf(GgufFile::open(path));
}

std::unique_ptr<Tokenizer> Tokenizer::from_gguf(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string& kind = file.get_string(kKey);
  if (kind == "llama") return std::make_unique<SpmTokenizer>(file);
  if (kind == "gpt2" || kind == "gemma4") return std::make_unique<BpeTokenizer>(file);
  fail(ErrorCode::kBadModel,
       "'{}': metadata key '{}' is '{}', which is not supported; supported: 'llama', 'gpt2', "
       "'gemma4', 't5'",
       file.path(), kKey, kind);
}

}  // namespace snapkv
