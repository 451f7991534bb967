// SPDX-License-Identifier: MIT
#include "huggingface/vocabulary.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "huggingface/piece_vocabulary.h"
#include "huggingface/pre_tokenizer.h"
#include "huggingface/sentencepiece.h"
#include "huggingface/token_table.h"

namespace snapkv::huggingface {
namespace {

class VocabularyReader {
 public:
  VocabularyReader(const JsonFields& tokenizer, const Config& config, Keys& keys)
      : tokenizer_(tokenizer),
        model_(model_of(tokenizer)),
        keys_(keys),
        byte_level_(is_byte_level(tokenizer)),
        table_("tokenizer.json", config.n_vocab) {}

  /// `tokenizer_config`: may name further tokens.
  void run(const JsonFields& tokenizer_config) {
    check_kind();
    read_tokens();
    read_added();
    table_.read_decoder_tokens(tokenizer_config, Conflict::kError);
    std::vector<std::string> merges = read_merges();
    keys_.text("tokenizer.ggml.model", byte_level_ ? "gpt2" : "llama");
    if (byte_level_) {
      keys_.text("tokenizer.ggml.pre",
                 pre_tokenizer_name(tokenizer_, model_.flag("ignore_merges", false)));
      keys_.texts("tokenizer.ggml.merges", std::move(merges));
    } else {
      keys_.text("tokenizer.ggml.pre", "default");
      keys_.f32s("tokenizer.ggml.scores", std::move(table_.scores));
      keys_.flag("tokenizer.ggml.add_space_prefix", begins_with_space());
    }
    check_normalizer();
    keys_.texts("tokenizer.ggml.tokens", std::move(table_.tokens));
    keys_.i32s("tokenizer.ggml.token_type", std::move(table_.types));
  }

  const TokenTable& table() const { return table_; }

 private:
  static JsonFields model_of(const JsonFields& tokenizer) {
    const auto model = tokenizer.object("model");
    if (!model) tokenizer.bad("model", "is missing");
    return *model;
  }

  void check_kind() const {
    const std::string type = model_.text("type", model_.has("merges") ? "BPE" : "");
    if (type != "BPE") {
      model_.bad("type", "is \"{}\", supported is \"BPE\"", printable(type));
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model_.text(key, "").empty()) {
        model_.bad(key, "is \"{}\", which is not supported", printable(model_.text(key)));
      }
    }
    if (!byte_level_ && !model_.flag("byte_fallback", false)) {
      tokenizer_.bad("pre_tokenizer",
                     "has no ByteLevel step and model.byte_fallback is false: a "
                     "vocabulary of neither of the supported kinds");
    }
  }

  void read_tokens() {
    const auto vocab = model_.object("vocab");
    if (!vocab) model_.bad("vocab", "is missing");
    for (const auto& [text, id] : vocab->json().items()) {
      const int64_t i = vocab->integer(text, 0, INT32_MAX);
      table_.ids.emplace(text, i);
      if (i >= table_.n_vocab) {
        table_.n_beyond++;
        continue;
      }
      if (table_.types[i] != 0) {
        vocab->bad(text, "is {}, as is token '{}'", i, printable(table_.tokens[i]));
      }
      table_.tokens[i] = text;
      table_.types[i] = !byte_level_ && is_byte_token(text) ? kByte : kNormal;
    }
    const std::string unknown = model_.text("unk_token", "");
    if (!byte_level_ && !unknown.empty()) {
      const int64_t id = table_.find(unknown);
      if (id >= 0 && id < table_.n_vocab) table_.types[id] = kUnknown;
    }
    table_.pad();
  }

  void read_added() {
    const Json* list = tokenizer_.find("added_tokens");
    if (list == nullptr) return;
    if (!list->is_array()) tokenizer_.bad("added_tokens", "is {}, expected an array", shown(*list));
    for (const Json& item : *list) {
      if (!item.is_object()) {
        tokenizer_.bad("added_tokens", "holds {}, expected objects", shown(item));
      }
      const JsonFields added(item, tokenizer_.file(), "added_tokens[].");
      const int64_t id = added.integer("id", 0, INT32_MAX);
      const std::string& text = added.text("content");
      const auto [at, inserted] = table_.ids.emplace(text, id);
      if (!inserted && at->second != id) {
        added.bad("id", "of '{}' is {}, but {} before", printable(text), id, at->second);
      }
      if (id >= table_.n_vocab) {
        table_.n_beyond += inserted ? 1 : 0;
        continue;
      }
      table_.set_added(id, text, added.flag("special", false));
    }
    table_.log_beyond(tokenizer_.file());
  }

  /// One merge: an array of two texts, or, in older files, one text with a space between the two.
  std::pair<std::string_view, std::string_view> merge_of(const Json& item) const {
    if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      return {item[0].get_ref<const std::string&>(), item[1].get_ref<const std::string&>()};
    }
    if (item.is_string()) {
      const std::string_view text = item.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    model_.bad("merges", "holds {}, expected two texts", shown(item));
  }

  /// Returns the merges as GGUF writes them and sets `table_.scores`: the piece that the first
  /// merge makes gets the highest score.
  std::vector<std::string> read_merges() {
    const Json* list = model_.find("merges");
    if (list == nullptr || !list->is_array()) model_.bad("merges", "is not an array");
    const int64_t n_merges = list->size();
    if (!byte_level_) {
      for (int64_t i = 0; i < table_.n_vocab; ++i) {
        table_.scores.push_back(-static_cast<float>(n_merges + 1 + i));
      }
    }
    std::vector<std::string> merges;
    std::vector<bool> made(table_.n_vocab, false);
    int64_t rank = 0;
    std::string piece;
    for (const Json& item : *list) {
      ++rank;
      const auto [first, second] = merge_of(item);
      piece.assign(first).append(second);
      const int64_t id = table_.find(piece);
      if (id < 0) {
        model_.bad("merges", "makes '{}', which is not a token", printable(piece));
      }
      if (byte_level_) {
        // In GGUF a space separates the two parts, so spaces in them are spelled U+0120, as in
        // these vocabularies.
        merges.push_back(fmt::format("{} {}", replaced(std::string(first), " ", "\xc4\xa0"),
                                     replaced(std::string(second), " ", "\xc4\xa0")));
      } else if (id < table_.n_vocab && !made[id]) {
        made[id] = true;
        table_.scores[id] = -static_cast<float>(rank);
      }
    }
    return merges;
  }

  /// The steps of `normalizer`; a sequence is taken apart one level deep.
  std::vector<JsonFields> normalizers() const {
    const auto top = tokenizer_.object("normalizer");
    if (!top) return {};
    if (top->text("type") != "Sequence") return {*top};
    const Json* list = top->find("normalizers");
    if (list == nullptr || !list->is_array()) top->bad("normalizers", "is not an array");
    std::vector<JsonFields> steps;
    for (const Json& item : *list) {
      if (!item.is_object()) top->bad("normalizers", "holds {}, expected objects", shown(item));
      steps.emplace_back(item, tokenizer_.file(), "normalizer.normalizers[].");
    }
    return steps;
  }

  void check_normalizer() const {
    for (const JsonFields& step : normalizers()) {
      const std::string& type = step.text("type");
      if (byte_level_ && type == "NFC") {
        keys_.flag("tokenizer.ggml.normalizer.nfc", true);
        continue;
      }
      if (!byte_level_ && type == "Prepend" && step.text("prepend", "") == kSpace) continue;
      if (!byte_level_ && type == "Replace" && step.text("content", "") == kSpace) {
        const auto pattern = step.object("pattern");
        if (pattern && pattern->text("String", "") == " ") continue;
      }
      step.bad("type", "is \"{}\", which is not supported for this kind of vocabulary",
               printable(type));
    }
  }

  bool begins_with_space() const {
    bool begins = false;
    for (const JsonFields& step : normalizers()) begins |= step.text("type") == "Prepend";
    const auto pre = tokenizer_.object("pre_tokenizer");
    if (!pre) return begins;
    const std::string& type = pre->text("type");
    if (type == "Metaspace") {
      const char* otherwise = pre->flag("add_prefix_space", true) ? "always" : "never";
      return pre->text("prepend_scheme", otherwise) != "never";
    }
    if (type != "Split") {  // Gemma's splits at spaces, which the normalizer has replaced
      pre->bad("type", "is \"{}\", supported with byte_fallback are Metaspace and Split",
               printable(type));
    }
    return begins;
  }

  const JsonFields& tokenizer_;
  const JsonFields model_;
  Keys& keys_;
  const bool byte_level_;
  TokenTable table_;
};

/// The token in "<s>" or { "content": "<s>", ... }; empty if there is none.
std::string token_content(const JsonFields& fields, const std::string& key) {
  const Json* value = fields.find(key);
  if (value == nullptr) return "";
  if (value->is_object()) return fields.object(key)->text("content");
  return fields.text(key);
}

/// The special tokens that the post-processor puts before and after a text.
struct AddedAround {
  std::optional<std::string> before, after;
  bool known = false;  // whether a post-processor tells
};

void read_template(const JsonFields& processor, AddedAround& around) {
  const Json* single = processor.find("single");
  if (single == nullptr || !single->is_array()) processor.bad("single", "is not an array");
  around.known = true;
  bool text_seen = false;
  for (const Json& part : *single) {
    if (!part.is_object()) processor.bad("single", "holds {}, expected objects", shown(part));
    const JsonFields fields(part, processor.file(), "post_processor.single[].");
    if (fields.has("Sequence")) {
      text_seen = true;
      continue;
    }
    const auto token = fields.object("SpecialToken");
    std::optional<std::string>& place = text_seen ? around.after : around.before;
    if (!token || place) {
      processor.bad("single", "is {}, supported is a text with one token before it and one after",
                    processor.json()["single"].dump());
    }
    place = token->text("id");
  }
}

AddedAround read_post_processor(const JsonFields& tokenizer) {
  AddedAround around;
  const auto top = tokenizer.object("post_processor");
  if (!top) return around;
  const auto read = [&](const JsonFields& processor) {
    const std::string& type = processor.text("type");
    if (type == "TemplateProcessing") {
      read_template(processor, around);
    } else if (type == "ByteLevel") {
      around.known = true;
    } else {
      processor.bad("type", "is \"{}\", supported are TemplateProcessing and ByteLevel",
                    printable(type));
    }
  };
  if (top->text("type") != "Sequence") {
    read(*top);
    return around;
  }
  const Json* list = top->find("processors");
  if (list == nullptr || !list->is_array()) top->bad("processors", "is not an array");
  for (const Json& item : *list) {
    if (!item.is_object()) top->bad("processors", "holds {}, expected objects", shown(item));
    read(JsonFields(item, tokenizer.file(), "post_processor.processors[]."));
  }
  return around;
}

/// The ids in `eos_token_id`, which is a number or an array of numbers.
std::vector<int64_t> ids_of(const JsonFields& fields, const char* key, int64_t n_vocab) {
  const Json* value = fields.find(key);
  if (value == nullptr) return {};
  std::vector<int64_t> ids;
  for (const Json& item : value->is_array() ? *value : Json::array({*value})) {
    if (!item.is_number_integer() || item < 0 || item >= n_vocab) {
      fields.bad(key, "holds {}, expected token ids below {}", shown(item), n_vocab);
    }
    ids.push_back(item.get<int64_t>());
  }
  return ids;
}

class SpecialReader {
 public:
  SpecialReader(const VocabularyFiles& files, const Config& config, const TokenTable& vocabulary,
                Keys& keys)
      : files_(files), config_(config), vocabulary_(vocabulary), keys_(keys) {}

  /// `otherwise`: ids for the kinds of tokens that no other file names.
  void run(const NamedIds& otherwise) {
    for (const char* kind : {"bos", "eos", "unk", "sep", "pad", "mask"}) {
      const std::string content =
          token_content(files_.tokenizer_config, kind + std::string("_token"));
      int64_t id = content.empty() ? -1 : vocabulary_.find(content);
      if (id < 0) {
        const auto ids =
            ids_of(files_.root, (kind + std::string("_token_id")).c_str(), config_.n_vocab);
        if (!ids.empty()) id = ids[0];
      }
      const auto named = otherwise.find(kind);
      const bool told_later =
          kind == std::string_view("eos") && files_.generation.has("eos_token_id");
      if (id < 0 && !told_later && named != otherwise.end()) id = named->second;
      if (id >= 0 && id < config_.n_vocab) set(kind, id);
    }
    const AddedAround around = read_post_processor(files_.tokenizer);
    set_added("bos", around.known, around.before);
    set_added("eos", around.known, around.after);
    add_other_ends();
  }
  bool has(const std::string& kind) const { return ids_.contains(kind); }

 private:
  void set(const std::string& kind, int64_t id) {
    const std::string name = kind == "unk"   ? "unknown"
                             : kind == "sep" ? "seperator"
                             : kind == "pad" ? "padding"
                                             : kind;  // GGUF's spelling
    keys_.u32("tokenizer.ggml." + name + "_token_id", id);
    ids_[kind] = id;
  }

  void set_added(const std::string& kind, bool known, const std::optional<std::string>& token) {
    const std::string key = "add_" + kind + "_token";
    const JsonFields& tokenizer_config = files_.tokenizer_config;
    if (token) {
      const int64_t id = vocabulary_.find(*token);
      if (id < 0 || id >= config_.n_vocab) {
        files_.tokenizer.bad("post_processor", "adds '{}', which is not a token",
                             printable(*token));
      }
      if (!ids_.contains(kind)) set(kind, id);
      if (ids_[kind] != id) {
        files_.tokenizer.bad("post_processor",
                             "adds '{}' {} every text, but the {} token is another, which is not "
                             "supported",
                             printable(*token), kind == "bos" ? "before" : "after", kind);
      }
      keys_.flag("tokenizer.ggml." + key, true);
    } else if (known) {
      keys_.flag("tokenizer.ggml." + key, false);
    } else if (tokenizer_config.has(key)) {
      keys_.flag("tokenizer.ggml." + key, tokenizer_config.flag(key, false) && ids_.contains(kind));
    }
  }

  /// generation_config.json may name several tokens that end an answer; GGUF has keys for three.
  void add_other_ends() {
    constexpr std::array kNames = {"eot", "eom"};
    size_t n = 0;
    for (const int64_t id : ids_of(files_.generation, "eos_token_id", config_.n_vocab)) {
      if (!ids_.contains("eos")) {
        set("eos", id);
      } else if (id == ids_["eos"]) {
        continue;
      } else if (n < kNames.size()) {
        set(kNames[n++], id);
      } else {
        log_warn(
            "'{}': eos_token_id {} is one of more than {} that end an answer; GGUF has no key "
            "for it",
            files_.generation.file(), id, kNames.size() + 1);
      }
    }
  }

  const VocabularyFiles& files_;
  const Config& config_;
  const TokenTable& vocabulary_;
  Keys& keys_;
  std::unordered_map<std::string, int64_t> ids_;  // by kind of token
};

}  // namespace

void add_vocabulary_keys(const VocabularyFiles& files, const Config& config, Keys& keys) {
  VocabularyReader vocabulary(files.tokenizer, config, keys);
  vocabulary.run(files.tokenizer_config);
  SpecialReader(files, config, vocabulary.table(), keys).run({});
}

void add_vocabulary_keys(const std::string& folder, const JsonFields& root, const Config& config,
                         Keys& keys) {
  const std::string path = folder + "/tokenizer.json";
  const auto tokenizer = read_json_if_there(path, kTokenizerLimits);
  const std::string config_path = folder + "/tokenizer_config.json";
  const Json tokenizer_config =
      read_json_if_there(config_path, kTokenizerLimits).value_or(Json::object());
  const std::string generation_path = folder + "/generation_config.json";
  const Json generation = read_json_if_there(generation_path).value_or(Json::object());
  const Json none = Json::object();
  const JsonFields tokenizer_fields(tokenizer ? *tokenizer : none, path);
  const JsonFields config_fields(tokenizer_config, config_path);
  const JsonFields generation_fields(generation, generation_path);
  const VocabularyFiles files = {tokenizer_fields, config_fields, generation_fields, root};
  if (tokenizer) return add_vocabulary_keys(files, config, keys);
  const auto pieces = read_sentencepiece_if_there(folder + "/tokenizer.model");
  if (!pieces) {
    fail(ErrorCode::kBadModel,
         "'{}' has neither tokenizer.json nor tokenizer.model, one of which is needed", folder);
  }
  const std::string added_path = folder + "/added_tokens.json";
  const Json added = read_json_if_there(added_path, kTokenizerLimits).value_or(Json::object());
  const auto vocabulary =
      add_piece_keys(*pieces, JsonFields(added, added_path), config_fields, config, keys);
  SpecialReader special(files, config, vocabulary.table, keys);
  special.run(vocabulary.named);
  if (!special.has("bos")) keys.flag("tokenizer.ggml.add_bos_token", false);
}

}  // namespace snapkv::huggingface
