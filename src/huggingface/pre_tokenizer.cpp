// SPDX-License-Identifier: MIT
#include "huggingface/pre_tokenizer.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace snapkv::huggingface {
namespace {

/// One step as a line of text, with only the settings that make a difference.
std::string step_text(const JsonFields& step) {
  const std::string& type = step.text("type");
  if (type == "ByteLevel") {
    if (step.flag("add_prefix_space", true)) return "ByteLevel with a space before the text";
    return step.flag("use_regex", true) ? "ByteLevel" : "ByteLevel without its pattern";
  }
  if (type == "Digits") {
    return step.flag("individual_digits", false) ? "each digit" : "runs of digits";
  }
  if (type == "Punctuation") {
    const std::string behavior = step.text("behavior", "Isolated");
    return behavior == "Contiguous" ? "runs of punctuation" : "punctuation, " + behavior;
  }
  if (type == "Split") {
    const auto pattern = step.object("pattern");
    const std::string regex = pattern ? pattern->text("Regex", "") : "";
    const std::string behavior = step.text("behavior", "");
    const bool inverted = step.flag("invert", false);
    // "Removed" and inverted keeps only the matches. That equals "Isolated" where the pattern
    // matches everything, as the known patterns do.
    const bool isolated =
        (behavior == "Isolated" && !inverted) || (behavior == "Removed" && inverted);
    if (!regex.empty() && isolated) return "split " + regex;
    return fmt::format("split ({}{}) {}", behavior, inverted ? ", inverted" : "", regex);
  }
  return type;
}

std::vector<std::string> steps_of(const JsonFields& tokenizer) {
  const auto top = tokenizer.object("pre_tokenizer");
  if (!top) return {};
  if (top->text("type") != "Sequence") return {step_text(*top)};
  const Json* list = top->find("pretokenizers");
  if (list == nullptr || !list->is_array()) top->bad("pretokenizers", "is not an array");
  std::vector<std::string> steps;
  for (const Json& item : *list) {
    if (!item.is_object()) top->bad("pretokenizers", "holds {}, expected objects", shown(item));
    steps.push_back(step_text(JsonFields(item, top->file(), "pre_tokenizer.pretokenizers[].")));
  }
  return steps;
}

// The steps in the tokenizer.json files of the vocabularies that these names stand for.
constexpr std::string_view kLlama3 =
    R"(split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+)"
    R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Split =
    R"(split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+)"
    R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Split =
    R"(split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"(split [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"(split [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBytes = "ByteLevel without its pattern";

// For DeepSeek V3: three splits, one after another.
constexpr std::string_view kDeepseekNumbers = R"(split \p{N}{1,3})";
constexpr std::string_view kDeepseekCjk = "split [一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kDeepseekWords =
    "split [!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

// For BLOOM. The brackets within the brackets add to what is not matched.
constexpr std::string_view kBloomSplit = "split  ?[^(\\s|[.,!?…。，、।۔،])]+";

struct Known {
  std::string_view name;
  std::vector<std::string_view> steps;
};

const std::vector<Known>& known() {
  static const std::vector<Known> all = {
      {"llama-bpe", {kLlama3, kBytes}},
      {"qwen2", {kQwen2Split, kBytes}},
      {"qwen35", {kQwen35Split, kBytes}},
      {"tekken", {kTekken, kBytes}},
      {"gpt-4o", {kGpt4o, kBytes}},
      {"deepseek-v3", {kDeepseekNumbers, kDeepseekCjk, kDeepseekWords, kBytes}},
      {"smollm", {"each digit", "ByteLevel"}},
      {"gpt-2", {"ByteLevel"}},
      {"bloom", {kBloomSplit, kBytes}},
      {"falcon", {"runs of punctuation", "ByteLevel", "runs of digits", "split [0-9][0-9][0-9]"}},
  };
  return all;
}

}  // namespace

std::string pre_tokenizer_name(const JsonFields& tokenizer, bool ignore_merges) {
  const std::vector<std::string> steps = steps_of(tokenizer);
  for (const Known& k : known()) {
    if (!std::equal(k.steps.begin(), k.steps.end(), steps.begin(), steps.end())) continue;
    // The same pattern under another name, which means that merges are not ignored.
    return k.name == "llama-bpe" && !ignore_merges ? "dbrx" : std::string(k.name);
  }
  std::string text;
  for (const std::string& step : steps) text += (text.empty() ? "" : "; ") + printable(step);
  tokenizer.bad("pre_tokenizer", "is none that GGUF has a known name for: {}",
                text.empty() ? "missing" : text);
}

bool is_byte_level(const JsonFields& tokenizer) {
  for (const std::string& step : steps_of(tokenizer)) {
    if (step.starts_with("ByteLevel")) return true;
  }
  return false;
}

}  // namespace snapkv::huggingface
