// SPDX-License-Identifier: MIT
#include "tests/fuzz/fuzz_huggingface.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "huggingface/config.h"
#include "huggingface/piece_vocabulary.h"
#include "huggingface/safetensors.h"
#include "huggingface/sentencepiece.h"
#include "huggingface/vocabulary.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {
namespace {

using namespace huggingface;  // everything used here belongs to it

void read_weights(std::span<const std::byte> bytes) {
  uint64_t at = 0;
  for (const SafetensorsEntry& e : parse_safetensors(bytes, "input")) {
    SNAPKV_CHECK(e.begin <= e.end && e.end <= bytes.size());
    SNAPKV_CHECK(at == 0 || e.begin == at);  // no gap between two tensors
    at = e.end;
  }
}

void read_configuration(std::string_view text) {
  const std::string label = "input";
  const Json json = parse_json(text, label, {.python_numbers = true});
  const Config config = huggingface::read_config(JsonFields(json, label));
  Keys keys;
  add_config_keys(config, keys);
  if (config.rope.type == "llama3") {
    SNAPKV_CHECK(std::ssize(llama3_factors(config)) == config.n_rot / 2);
  }
}

void read_vocabulary(std::string_view text) {
  const std::string label = "input";
  const Json json = parse_json(text, label);
  const Json empty = Json::object();
  const JsonFields tokenizer(json, label), none(empty, label);
  Config config;
  config.n_vocab = 320;
  Keys keys;
  add_vocabulary_keys({tokenizer, none, none, none}, config, keys);
  const auto metadata = keys.take();
  const auto& tokens = metadata.at("tokenizer.ggml.tokens").value;
  SNAPKV_CHECK(std::get<std::vector<std::string>>(tokens).size() == 320);
}

void read_pieces(std::span<const std::byte> bytes) {
  const SentencePieceModel model = parse_sentencepiece(bytes, "input");
  SNAPKV_CHECK(!model.pieces.empty() && model.pieces.size() <= bytes.size());
  const std::string label = "none";
  const Json empty = Json::object();
  const JsonFields none(empty, label);
  Config config;
  config.n_vocab = 320;
  Keys keys;
  const PieceVocabulary vocabulary = add_piece_keys(model, none, none, config, keys);
  for (const auto& [kind, id] : vocabulary.named) SNAPKV_CHECK(id >= 0 && id < 320);
}

}  // namespace

bool read_hostile_huggingface(std::span<const std::byte> bytes) {
  if (bytes.empty()) return false;
  const auto rest = bytes.subspan(1);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  try {
    switch (static_cast<char>(bytes[0])) {
      case 's':
        read_weights(rest);
        return true;
      case 'c':
        read_configuration(text);
        return true;
      case 't':
        read_vocabulary(text);
        return true;
      case 'p':
        read_pieces(rest);
        return true;
      default:
        return false;
    }
  } catch (const Error& e) {
    SNAPKV_CHECK(e.code() == ErrorCode::kBadModel);
    return false;
  }
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::read_hostile_huggingface({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
