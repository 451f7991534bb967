// SPDX-License-Identifier: MIT
#include "text/tokenizer_json.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "text/json_vocab.h"

namespace snapkv {
namespace {

/// The model's type; old files do not name it, and it is told by the tables that they have.
std::string model_type(const TokenizerFile& file, const JsonField& model) {
  if (!model["type"].is_null()) return model["type"].string();
  return file.has_merges ? "BPE" : !file.scored_vocab.empty() ? "Unigram" : "WordLevel";
}

void expect_off(const JsonField& field) {
  const bool off = field.is_null() || (field.is_string() && field.string().empty());
  if (!off) field.fail_unsupported("anything but null", "null");
}

int32_t token_named(const Vocab& vocab, const JsonField& field) {
  if (field.is_null()) return -1;
  const int32_t id = vocab.find(field.string());
  if (id < 0) field.fail_expected("a token of the vocabulary");
  return id;
}

BpeModel::Options bpe_options(const Vocab& vocab, const JsonField& model, bool byte_level) {
  expect_off(model["continuing_subword_prefix"]);
  expect_off(model["end_of_word_suffix"]);
  const JsonField dropout = model["dropout"];
  if (!dropout.is_null() && !dropout.is_zero()) {
    dropout.fail_unsupported("dropout", "null");
  }
  return {.alphabet = byte_level ? BpeModel::Alphabet::bytes : BpeModel::Alphabet::characters,
          .ignore_merges = model["ignore_merges"].boolean(false),
          .last_merge_wins = true,
          .strict_merges = true,
          .byte_tokens = model["byte_fallback"].boolean(false),
          .fuse_unknown = model["fuse_unk"].boolean(false),
          .unknown = token_named(vocab, model["unk_token"])};
}

/// A token's text in tokenizer_config.json: "..." or {"content": "..."}; empty if there is none.
std::string token_text_of(const JsonField& field) {
  if (field.is_null()) return {};
  return field.is_object() ? field["content"].string("") : field.string();
}

int32_t id_of(const Vocab& vocab, const JsonField& field) {
  const int64_t id = field.integer();
  if (id < 0 || id >= vocab.size()) {
    field.fail_expected(fmt::format("an id below {}", vocab.size()));
  }
  return static_cast<int32_t>(id);
}

/// The places in `normalized`, the normalized form of `text`, of `ranges` of `text`. To find them,
/// the ranges' ends are marked in the text, and the marks are searched for in its normalized form.
/// Returns all of `normalized` if this fails because text across an end is normalized as a whole.
std::vector<ByteRange> normalized_ranges(const Normalizer& normalizer, std::string_view text,
                                         std::string_view normalized,
                                         std::span<const ByteRange> ranges) {
  constexpr std::string_view kMark = "\xef\xb7\x90";  // U+FDD0, which is not a character
  if (ranges.empty()) return {};
  const std::vector<ByteRange> everything = {{0, normalized.size()}};
  if (text.find(kMark) != std::string_view::npos) return everything;
  std::string marked;
  size_t done = 0;
  const auto mark = [&](size_t at) {
    marked += text.substr(done, at - done);
    done = at;
    if (at > 0 && at < text.size()) marked += kMark;
  };
  for (const ByteRange& range : ranges) {
    mark(range.begin);
    mark(range.end);
  }
  marked += text.substr(done);
  marked = normalizer.apply(marked);
  std::string unmarked;
  size_t read = 0;
  const auto next_place = [&](size_t at) {
    if (at == 0) return size_t{0};
    if (at == text.size()) return normalized.size();
    const size_t found = std::min(marked.find(kMark, read), marked.size());
    unmarked.append(marked, read, found - read);
    read = std::min(found + kMark.size(), marked.size());
    return unmarked.size();
  };
  std::vector<ByteRange> places;
  for (const ByteRange& range : ranges) {
    const size_t begin = next_place(range.begin);
    places.push_back({begin, next_place(range.end)});
  }
  unmarked.append(marked, read);
  return unmarked == normalized ? places : everything;
}

}  // namespace

std::unique_ptr<Tokenizer> JsonTokenizer::make(const TokenizerFile& file, const Config& config) {
  return std::unique_ptr<Tokenizer>(new JsonTokenizer(file, config, read_json_vocab(file)));
}

JsonTokenizer::JsonTokenizer(const TokenizerFile& file, const Config& config, JsonVocab vocab)
    : VocabTokenizer(std::move(vocab.vocab)),
      normalizer_(Normalizer::from_json(JsonField(file.json, file.origin)["normalizer"])),
      cutter_(JsonField(file.json, file.origin)["pre_tokenizer"]),
      decoder_(JsonField(file.json, file.origin)["decoder"]) {
  read_post_processor(JsonField(file.json, file.origin)["post_processor"]);
  read_special(config);
  close_control_tokens(vocab);
  read_added(std::move(vocab.added));
  read_model(file, vocab);
}

void JsonTokenizer::read_template(const JsonField& field) {
  std::vector<int32_t> before, after;
  bool text_seen = false;
  for (const JsonField& item : field["single"].elements()) {
    if (item.has("Sequence")) {
      const JsonField name = item["Sequence"]["id"];
      if (text_seen || name.string() != "A") name.fail_expected("\"A\", once");
      text_seen = true;
      continue;
    }
    const std::string& name = item["SpecialToken"]["id"].string();
    const JsonField tokens = field["special_tokens"];
    for (const JsonField& id : tokens[name.c_str()]["ids"].elements()) {
      (text_seen ? after : before).push_back(id_of(vocab_, id));
    }
  }
  if (!text_seen) field["single"].fail_expected("a Sequence \"A\"");
  before_.insert(before_.begin(), before.begin(), before.end());
  after_.insert(after_.end(), after.begin(), after.end());
}

void JsonTokenizer::read_post_processor(const JsonField& field) {
  if (field.is_null()) return;
  const std::string& type = field["type"].string();
  if (type == "Sequence") {
    for (const JsonField& part : field["processors"].elements()) read_post_processor(part);
  } else if (type == "TemplateProcessing") {
    read_template(field);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto second = [&](const char* key) {
      const auto pair = field[key].elements();
      if (pair.size() != 2) field[key].fail_expected("[token, id]");
      return id_of(vocab_, pair[1]);
    };
    before_.insert(before_.begin(), second("cls"));
    after_.push_back(second("sep"));
  } else if (type != "ByteLevel") {  // ByteLevel only affects offsets in the text
    field["type"].fail_unsupported(
        "'" + type + "'",
        "TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing, Sequence");
  }
}

void JsonTokenizer::read_special(const Config& config) {
  SpecialTokens& s = vocab_.special;
  if (config.tokenizer.is_object()) {
    const JsonField field(config.tokenizer, fmt::format("'{}'", config.tokenizer_path));
    const auto id = [&](const char* key) { return vocab_.find(token_text_of(field[key])); };
    s.bos = id("bos_token");
    s.eos = id("eos_token");
    s.unk = id("unk_token");
    s.pad = id("pad_token");
  } else if (!before_.empty()) {
    s.bos = before_.front();
  }
  s.add_bos = s.bos >= 0 && std::find(before_.begin(), before_.end(), s.bos) != before_.end();
  s.add_eos = s.eos >= 0 && std::find(after_.begin(), after_.end(), s.eos) != after_.end();
  vocab_.find_ends({});
  if (config.generation.is_object()) {
    read_ends(JsonField(config.generation, fmt::format("'{}'", config.generation_path)));
  }
}

void JsonTokenizer::read_ends(const JsonField& generation_config) {
  const JsonField field = generation_config["eos_token_id"];
  if (field.is_null()) return;
  if (!field.is_array()) {
    vocab_.ends[id_of(vocab_, field)] = true;
    return;
  }
  for (const JsonField& id : field.elements()) vocab_.ends[id_of(vocab_, id)] = true;
}

void JsonTokenizer::close_control_tokens(JsonVocab& vocab) const {
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    if (vocab_.is_special(id)) vocab.text_may_be[id] = false;
  }
  const int32_t eos = vocab_.special.eos;
  const bool is_listed = std::any_of(vocab.added.begin(), vocab.added.end(),
                                     [&](const AddedToken& token) { return token.id == eos; });
  if (eos < 0 || is_listed) return;
  AddedToken token;
  token.id = eos;
  token.content = vocab_.tokens[eos];
  token.normalized = false;
  token.special = true;
  vocab.added.push_back(std::move(token));
}

void JsonTokenizer::read_added(std::vector<AddedToken> added) {
  is_added_.assign(vocab_.tokens.size(), false);
  std::vector<std::pair<std::string, AddedToken>> as_written, normalized;
  for (AddedToken& token : added) {
    is_added_[token.id] = true;
    // The text may show that this is a control token even if the file does not say so.
    token.special = vocab_.is_special(token.id);
    if (token.normalized && normalizer_) {
      normalized.emplace_back(normalizer_->apply(token.content), std::move(token));
    } else {
      std::string text = token.content;
      as_written.emplace_back(std::move(text), std::move(token));
    }
  }
  as_written_ = AddedTokens(std::move(as_written));
  normalized_ = AddedTokens(std::move(normalized));
}

void JsonTokenizer::read_model(const TokenizerFile& file, const JsonVocab& vocab) {
  const JsonField model = JsonField(file.json, file.origin)["model"];
  const std::string type = model_type(file, model);
  if (!file.has_vocab) model["vocab"].fail_expected("the vocabulary");
  if (type == "BPE") {
    if (!file.has_merges) model["merges"].fail_expected("the list of merges");
    BpeModel::Merges merges(file.merges.begin(), file.merges.end());
    const auto options = bpe_options(vocab_, model, cutter_.is_byte_level());
    if (vocab_.special.unk < 0) vocab_.special.unk = options.unknown;
    bpe_.emplace(vocab_, merges, vocab.text_may_be, options, file.origin + ": model");
  } else if (type == "Unigram") {
    if (cutter_.is_byte_level()) {
      model["type"].fail_unsupported("'Unigram' with a pre-tokenizer ByteLevel", "BPE");
    }
    if (file.scored_vocab.empty()) {
      fail(ErrorCode::kBadModel, "{}: model.vocab has no scores, expected a list of [text, score]",
           file.origin);
    }
    const JsonField unk = model["unk_id"];
    const int32_t unknown = unk.is_null() ? -1 : id_of(vocab_, unk);
    if (vocab_.special.unk < 0) vocab_.special.unk = unknown;
    unigram_.emplace(vocab_, vocab.scores, vocab.text_may_be, vocab.lowest_score,
                     UnigramModel::Options{.unknown = unknown,
                                           .byte_tokens = model["byte_fallback"].boolean(false)},
                     file.origin + ": model");
  } else {
    model["type"].fail_unsupported("'" + type + "'", "BPE, Unigram");
  }
}

void JsonTokenizer::encode_text(std::string_view text, bool first,
                                std::vector<int32_t>& out) const {
  const PieceCutter::Pieces pieces = cutter_.cut(text, first);
  if (unigram_) {
    for (const auto& piece : pieces.list) unigram_->encode(piece.text, out);
    return;
  }
  BpeModel::Encoder encoder(*bpe_, text.size(), out);
  for (const auto& piece : pieces.list) encoder.add(piece.text);
}

void JsonTokenizer::encode_section(std::string_view text, bool first, bool parse_special,
                                   std::span<const ByteRange> plain,
                                   std::vector<int32_t>& out) const {
  std::string prepared;
  std::vector<ByteRange> moved;
  if (normalizer_) {
    prepared = normalizer_->apply(text);
    moved = normalized_ranges(*normalizer_, text, prepared, plain);
    text = prepared;
    plain = moved;
  }
  for (const auto& section : normalized_.split(text, parse_special, plain)) {
    if (section.token >= 0) {
      out.push_back(section.token);
    } else {
      encode_text(section.text, first && section.text.data() == text.data(), out);
    }
  }
}

void JsonTokenizer::encode_sections(std::string_view text, bool first, bool parse_special,
                                    std::span<const ByteRange> plain,
                                    std::vector<int32_t>& out) const {
  auto range = plain.begin();  // the first range that does not end before the section
  for (const auto& section : as_written_.split(text, parse_special, plain)) {
    if (section.token >= 0) {
      out.push_back(section.token);
      continue;
    }
    const size_t begin = static_cast<size_t>(section.text.data() - text.data());
    const size_t end = begin + section.text.size();
    while (range != plain.end() && range->end <= begin) ++range;
    std::vector<ByteRange> inside;
    for (auto each = range; each != plain.end() && each->begin < end; ++each) {
      inside.push_back({std::max(each->begin, begin) - begin, std::min(each->end, end) - begin});
    }
    encode_section(section.text, first && begin == 0, parse_special, inside, out);
  }
}

std::vector<int32_t> JsonTokenizer::encode(std::string_view text, bool add_special,
                                           bool parse_special) const {
  check_text_length(text);
  std::string prepared;
  if (!utf8::is_valid(text)) text = prepared = utf8::with_replacements(text);
  std::vector<int32_t> out;
  if (add_special) out = before_;
  encode_sections(text, true, parse_special, {}, out);
  if (add_special) out.insert(out.end(), after_.begin(), after_.end());
  return out;
}

std::vector<int32_t> JsonTokenizer::encode_chat(const RenderedChat& chat, bool add_bos) const {
  check_text_length(chat.text);
  if (!utf8::is_valid(chat.text)) fail(ErrorCode::kUsage, "the text of a chat is not UTF-8");
  std::vector<int32_t> out;
  encode_sections(chat.text, /*first=*/add_bos, true, chat.input, out);
  const SpecialTokens& special = vocab_.special;
  if (add_bos && special.add_bos && (out.empty() || out[0] != special.bos)) {
    out.insert(out.begin(), special.bos);
  }
  return out;
}

std::string JsonTokenizer::piece(int32_t id, bool special) const {
  vocab_.check(id);
  if (is_hidden(id, special)) return {};
  const std::string& text = vocab_.tokens[id];
  return decoder_.bytes_of(text, is_added_[id]);
}

std::string JsonTokenizer::decode(std::span<const int32_t> ids, bool special) const {
  std::string out;
  bool begun = false;
  for (const int32_t id : ids) {
    const std::string text = piece(id, special);
    if (text.empty()) continue;
    if (begun) out += decoder_.separator();
    out.append(text, begun ? 0 : decoder_.stripped(text));
    begun = true;
  }
  return out;
}

std::string JsonTokenizer::description() const {
  return unigram_ ? "Unigram, tokenizer.json" : "BPE, tokenizer.json";
}

}  // namespace snapkv
