// SPDX-License-Identifier: MIT
// Tokenizer: the choice of a tokenizer for a file. Each kind of tokenizer has its own source file.
#include "snapkv/tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "format/gguf.h"
#include "format/mmap_file.h"
#include "text/tokenizer_bpe.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_plamo2.h"
#include "text/tokenizer_rwkv.h"
#include "text/tokenizer_spm.h"

namespace snapkv {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const MmapFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads a small JSON file from the folder of a tokenizer.json; null if there is none.
nlohmann::json read_beside(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  return parse_tokenizer_file(text_of(MmapFile(path.string())), path.string()).json;
}

std::shared_ptr<const Tokenizer> load_json(const fs::path& path, std::string_view text) {
  const fs::path folder = path.parent_path();
  JsonTokenizer::Config config;
  config.tokenizer_path = (folder / "tokenizer_config.json").string();
  config.generation_path = (folder / "generation_config.json").string();
  config.tokenizer = read_beside(config.tokenizer_path);
  config.generation = read_beside(config.generation_path);
  return JsonTokenizer::make(parse_tokenizer_file(text, path.string()), config);
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& path) {
  fs::path file = path;
  if (fs::is_directory(file)) {
    file /= "tokenizer.json";
    if (!fs::exists(file)) {
      fail(ErrorCode::kBadModel,
           "'{}': the folder has no tokenizer.json; a tokenizer.model is read with the weights "
           "only, or from the file that `snapkv convert` writes",
           path);
    }
  }
  {
    const MmapFile mapped(file.string());
    const std::string_view text = text_of(mapped);
    if (text.find_first_not_of(" \t\r\n") != text.npos &&
        text[text.find_first_not_of(" \t\r\n")] == '{') {
      return load_json(file, text);
    }
  }
  return from_gguf(GgufFile::open(file.string()));
}

std::unique_ptr<Tokenizer> Tokenizer::from_gguf(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string& kind = file.get_string(kKey);
  if (kind == "llama") return std::make_unique<SpmTokenizer>(file);
  if (kind == "rwkv") return std::make_unique<RwkvTokenizer>(file);
  if (kind == "plamo2") return std::make_unique<PlamoTokenizer>(file);
  if (kind == "gpt2" || kind == "gemma4") return std::make_unique<BpeTokenizer>(file);
  fail(ErrorCode::kBadModel,
       "'{}': metadata key '{}' is '{}', which is not supported; supported: 'llama', 'gpt2', "
       "'gemma4', 'rwkv', 'plamo2'",
       file.path(), kKey, kind);
}

}  // namespace snapkv
