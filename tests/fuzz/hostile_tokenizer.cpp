// SPDX-License-Identifier: MIT
#include "tests/fuzz/hostile_tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/utf8.h"
#include "format/gguf.h"
#include "snapkv/text_stream.h"
#include "snapkv/tokenizer.h"
#include "tests/support/gguf_writer.h"
#include "text/byte_alphabet.h"
#include "text/pre_tokenizers.h"
#include "text/tokenizer_json.h"

namespace snapkv::test {
namespace {

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<uint8_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::string text(size_t n) {
    const auto part = bytes_.first(std::min(n, bytes_.size()));
    bytes_ = bytes_.subspan(part.size());
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::string rest() { return text(bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
};

std::string_view pre_name(uint8_t place) {
  std::vector<std::string_view> names;
  for (const PreTokenizer& p : pre_tokenizers()) {
    names.insert(names.end(), p.names.begin(), p.names.end());
  }
  return names[place % names.size()];
}

/// Encodes and decodes: for any vocabulary, ids must be tokens and decoded text must be UTF-8.
void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer.encode(text, true, parse_special);
    TextStream stream({"ab", "\n"});
    for (const int32_t id : ids) {
      SNAPKV_CHECK(id >= 0 && id < tokenizer.n_vocab());
      SNAPKV_CHECK(utf8::is_valid(stream.push(tokenizer.piece(id, parse_special))));
    }
    SNAPKV_CHECK(utf8::is_valid(stream.finish()));
    tokenizer.decode(ids, parse_special);
  }
  // A text without control tokens must not produce any.
  for (const int32_t id : tokenizer.encode(text, false, false)) {
    SNAPKV_CHECK(!tokenizer.is_control(id) || id == tokenizer.special().unk);
  }
  for (int32_t id = 0; id < std::min<int64_t>(tokenizer.n_vocab(), 600); ++id) {
    tokenizer.token_text(id);
    tokenizer.is_end_of_generation(id);
  }
}

void put(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<std::byte> hostile_vocabulary(
    uint8_t kind, uint8_t pre, uint8_t flags,
    const std::vector<std::pair<uint8_t, std::string>>& tokens,
    const std::vector<std::string>& merges, std::string_view text) {
  std::vector<std::byte> out;
  for (const size_t value : {size_t{kind}, size_t{pre}, size_t{flags}, tokens.size()}) {
    out.push_back(static_cast<std::byte>(value));
  }
  for (const auto& [type, token] : tokens) {
    out.push_back(static_cast<std::byte>(type));
    out.push_back(static_cast<std::byte>(token.size()));
    put(out, token);
  }
  out.push_back(static_cast<std::byte>(merges.size()));
  for (const std::string& merge : merges) {
    out.push_back(static_cast<std::byte>(merge.size()));
    put(out, merge);
  }
  put(out, text);
  return out;
}

bool use_hostile_vocabulary(std::span<const std::byte> bytes) {
  constexpr std::string_view kKinds[] = {"llama", "gpt2", "gemma4", "rwkv", "plamo2"};
  Reader in(bytes);
  const std::string_view kind = kKinds[in.byte() % std::size(kKinds)];
  const std::string_view pre = pre_name(in.byte());
  const uint8_t flags = in.byte();
  std::vector<std::string> tokens, merges;
  std::vector<int32_t> types;
  std::vector<float> scores;
  const auto add = [&](std::string token, int32_t type) {
    scores.push_back(-static_cast<float>(tokens.size() % 97));
    tokens.push_back(std::move(token));
    types.push_back(type);
  };
  for (uint8_t n = in.byte(); n > 0; --n) {
    const int32_t type = in.byte() % 8;  // 7 is not a type
    add(in.text(in.byte()), type);
  }
  for (uint8_t n = in.byte(); n > 0; --n) merges.push_back(in.text(in.byte()));
  const bool byte_level = kind == "gpt2", escapes = kind == "rwkv";
  for (int byte = 0; (flags & 1) != 0 && byte < 256; ++byte) {
    std::string token = byte_level ? byte_alphabet::spellings()[static_cast<size_t>(byte)]
                        : escapes  ? fmt::format("\\x{:02x}", byte)
                                   : byte_alphabet::hex_spelling(static_cast<uint8_t>(byte));
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) {
      add(std::move(token), byte_level || escapes ? 1 : 6);
    }
  }
  GgufWriter writer;
  writer.add("tokenizer.ggml.model", kind).add("tokenizer.ggml.pre", pre);
  writer.add("tokenizer.ggml.tokens", tokens).add("tokenizer.ggml.token_type", types);
  writer.add("tokenizer.ggml.scores", scores).add("tokenizer.ggml.merges", merges);
  writer.add("tokenizer.ggml.bos_token_id", uint32_t{0});
  if ((flags & 2) != 0) writer.add("tokenizer.ggml.add_bos_token", true);
  if ((flags & 4) != 0) writer.add("tokenizer.ggml.remove_extra_whitespaces", true);
  const std::string text = in.rest();
  const auto file = writer.bytes();
  try {
    const auto tokenizer = Tokenizer::from_gguf(GgufFile::parse(file, "input"));
    use(*tokenizer, text);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool use_hostile_tokenizer_json(std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view json = all.substr(0, all.find('\0'));
  const std::string_view text = all.substr(std::min(json.size() + 1, all.size()));
  bool read = false;
  try {
    const auto tokenizer = JsonTokenizer::make(parse_tokenizer_file(json, "input"), {});
    read = true;
    use(*tokenizer, text);
  } catch (const Error&) {
    // the expected outcome for bad input
  }
  return read;
}

}  // namespace snapkv::test
