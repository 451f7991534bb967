// SPDX-License-Identifier: MIT
#include "model/file_kind.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

/// What files of some architectures are.
struct Kind {
  std::span<const std::string_view> architectures;
  const char* is;
  const char* wanted;
};

constexpr const char* kOwnFile = "its model has a GGUF file of its own, and snapkv reads text only";
constexpr const char* kDecoder =
    "wanted is one that continues a text, such as Llama, Qwen or Gemma (docs/models.md)";

constexpr std::string_view kProjectors[] = {"clip", "mmproj"};
constexpr std::string_view kVectors[] = {"controlvector"};
constexpr std::string_view kEmbeddings[] = {
    "bert",         "modern-bert", "neo-bert",  "nomic-bert",      "nomic-bert-moe", "jina-bert-v2",
    "jina-bert-v3", "eurobert",    "t5encoder", "gemma-embedding", "llama-embed"};
constexpr std::string_view kEncoderDecoders[] = {"t5"};
constexpr std::string_view kTextDiffusion[] = {"dream", "llada", "llada-moe", "rnd1"};
constexpr std::string_view kPictures[] = {"flux",    "sd1",     "sdxl",       "sd3",  "aura",
                                          "hidream", "cosmos",  "ltxv",       "ltx2", "hyvid",
                                          "wan",     "lumina2", "qwen_image", "pig"};
constexpr std::string_view kVoices[] = {"wavtokenizer-dec"};

constexpr Kind kKinds[] = {
    {kProjectors, "a projector of pictures or sound (mmproj)", kOwnFile},
    {kVectors, "a control vector, which steers a model", "name the model's own GGUF file"},
    {kEmbeddings, "an embedding model, which turns text into vectors", kDecoder},
    {kEncoderDecoders, "an encoder-decoder model", kDecoder},
    {kTextDiffusion, "a diffusion language model", kDecoder},
    {kPictures, "a diffusion model, which draws pictures or video", kDecoder},
    {kVoices, "a decoder of speech", kDecoder},
};

std::string described(std::string_view is, std::string_view key, std::string_view value,
                      std::string_view wanted) {
  return fmt::format("{} ({} is {}), not a model that writes text: {}", is, key, value, wanted);
}

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

/// The text of a key; empty where the file has none, or something else.
std::string text_of(const GgufFile& file, const std::string& key) {
  const auto at = file.metadata().find(key);
  if (at == file.metadata().end()) return "";
  const auto* text = std::get_if<std::string>(&at->second.value);
  return text == nullptr ? "" : *text;
}

std::string adapter_kind(const GgufFile& file) {
  const std::string type = text_of(file, "adapter.type");
  const std::string base = text_of(file, "general.base_model.0.name");
  const std::string wanted = fmt::format(
      "merge it into {} first, as llama.cpp's llama-export-lora does, and name the merged file",
      base.empty() ? "its model" : base);
  if (type.empty()) {
    return described("an adapter, which changes a model", "general.type", quoted("adapter"),
                     wanted);
  }
  const char* const is = type == "lora" ? "a LoRA adapter, which changes a model"
                                        : "an adapter, which changes a model";
  return described(is, "adapter.type", quoted(type), wanted);
}

/// Embedding models and rerankers of architectures that otherwise write text. The kinds of pooling
/// have llama.cpp's numbers.
std::string pooled_kind(const GgufFile& file, const std::string& architecture) {
  constexpr uint64_t kNone = 0, kRank = 4;
  const std::string key = architecture + ".pooling_type";
  const auto at = file.metadata().find(key);
  if (at == file.metadata().end()) return "";
  const auto* pooling = std::get_if<uint64_t>(&at->second.value);
  if (pooling == nullptr || *pooling == kNone) return "";
  const char* const is = *pooling == kRank ? "a reranker, which says how well texts fit a question"
                                           : "an embedding model, which turns text into vectors";
  return described(is, key, fmt::format("{}", *pooling), kDecoder);
}

}  // namespace

std::string foreign_kind(const GgufFile& file) {
  const std::string type = text_of(file, "general.type");
  const std::string architecture = text_of(file, "general.architecture");
  if (type == "imatrix") {
    return described("an importance matrix, from which a model was quantized", "general.type",
                     quoted(type), "name the model's own GGUF file");
  }
  if (type == "adapter" && architecture != "controlvector") return adapter_kind(file);
  if (type == "mmproj" || type == "clip-vision") {
    return described(kKinds[0].is, "general.type", quoted(type), kKinds[0].wanted);
  }
  // before architectures: a reranker may be a BERT
  if (std::string kind = pooled_kind(file, architecture); !kind.empty()) return kind;
  for (const Kind& kind : kKinds) {
    if (std::find(kind.architectures.begin(), kind.architectures.end(), architecture) ==
        kind.architectures.end()) {
      continue;
    }
    return described(kind.is, "general.architecture", quoted(architecture), kind.wanted);
  }
  if (file.tensors().empty()) {
    return "a vocabulary (no tensors), not a model that writes text: name a file with weights";
  }
  return "";
}

void check_file_kind(const GgufFile& file) {
  const std::string kind = foreign_kind(file);
  if (!kind.empty()) fail(ErrorCode::kBadModel, "{}: {}", file.path(), kind);
}

}  // namespace snapkv
