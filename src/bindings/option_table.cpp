// SPDX-License-Identifier: MIT
#include "bindings/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "base/parse_number.h"
#include "snapkv/limits.h"

namespace snapkv {
namespace {

using Group = OptionInfo::Group;
using Type = OptionInfo::Type;

/// What a row says besides the member that it sets.
struct RowText {
  const char* name;
  const char* help;
};

[[noreturn]] void refuse(const OptionInfo& info, std::string_view text) {
  fail(ErrorCode::kUsage, "{} is \"{}\"; it must be {}", info.name, text, info.range);
}

/// `access`: the member, of the options as they are given (const or not).
template <typename Access>
OptionRow row(Group group, Type type, const RowText& text, Access access) {
  OptionRow r;
  r.info.name = text.name;
  r.info.group = group;
  r.info.type = type;
  r.info.help = text.help;
  r.get = [access](const EngineOptions& o) {
    const auto& value = access(o);
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      return std::string(value ? "true" : "false");
    } else {
      return fmt::format("{}", value);
    }
  };
  return r;
}

template <typename Access>
OptionRow flag(Group group, const RowText& text, Access access) {
  OptionRow r = row(group, Type::boolean, text, access);
  r.info.range = "true or false";
  r.set = [access, info = r.info](EngineOptions& o, std::string_view value) {
    if (value != "true" && value != "false") refuse(info, value);
    access(o) = value == "true";
  };
  return r;
}

/// A whole number from `least` to `most`.
template <typename Access>
OptionRow whole(Group group, const RowText& text, Access access, int64_t least, int64_t most) {
  OptionRow r = row(group, Type::integer, text, access);
  r.info.range = most == std::numeric_limits<int64_t>::max()
                     ? fmt::format("a whole number, at least {}", least)
                     : fmt::format("a whole number from {} to {}", least, most);
  r.set = [access, info = r.info, least, most](EngineOptions& o, std::string_view value) {
    const std::optional<int64_t> n = parse_whole(value);
    if (!n || *n < least || *n > most) refuse(info, value);
    auto& member = access(o);
    member = static_cast<std::remove_reference_t<decltype(member)>>(*n);
  };
  return r;
}

template <typename Access>
OptionRow bytes(Group group, const RowText& text, Access access) {
  OptionRow r = row(group, Type::bytes, text, access);
  r.info.range = fmt::format("bytes from 0 to {}, as in 256MiB", kMostBytes);
  r.set = [access, info = r.info](EngineOptions& o, std::string_view value) {
    const std::optional<int64_t> n = parse_size(value);
    if (!n || *n < 0 || static_cast<size_t>(*n) > kMostBytes) refuse(info, value);
    access(o) = static_cast<size_t>(*n);
  };
  return r;
}

/// A number from `least` to `most`.
template <typename Access>
OptionRow real(Group group, const RowText& text, Access access, double least, double most) {
  OptionRow r = row(group, Type::real, text, access);
  r.info.range = fmt::format("a number from {} to {}", least, most);
  r.set = [access, info = r.info, least, most](EngineOptions& o, std::string_view value) {
    const std::optional<double> x = parse_real(value);
    if (!x || *x < least || *x > most) refuse(info, value);
    access(o) = *x;
  };
  return r;
}

/// A word of an enumeration, whose values count from 0 in the order of `words`.
template <typename Access>
OptionRow word(Group group, const RowText& text, Access access, std::vector<std::string> words) {
  OptionRow r = row(group, Type::word, text, [](const auto&) { return ""; });
  r.info.range = fmt::format("{}", fmt::join(words, ", "));
  r.info.words = std::move(words);
  r.get = [access, known = r.info.words](const EngineOptions& o) {
    return known[static_cast<size_t>(access(o))];
  };
  r.set = [access, info = r.info](EngineOptions& o, std::string_view value) {
    const auto found = std::find(info.words.begin(), info.words.end(), value);
    if (found == info.words.end()) refuse(info, value);
    auto& member = access(o);
    member =
        static_cast<std::remove_reference_t<decltype(member)>>(found - info.words.begin());
  };
  return r;
}

template <typename Access>
OptionRow text(Group group, const RowText& help, Access access) {
  OptionRow r = row(group, Type::text, help, access);
  r.set = [access](EngineOptions& o, std::string_view value) { access(o) = std::string(value); };
  return r;
}

OptionRow kv_type_row() {
  const std::vector<std::string> words = {"f32", "f16", "bf16", "q8_0"};
  OptionRow r = row(Group::session, Type::word,
                    {"kv_type", "Type of the cache; q8_0 needs a head_dim that 32 divides"},
                    [](const auto&) { return ""; });
  r.info.range = fmt::format("{}", fmt::join(words, ", "));
  r.info.words = words;
  r.get = [](const EngineOptions& o) { return std::string(name(o.session.kv_type)); };
  r.set = [info = r.info](EngineOptions& o, std::string_view value) {
    if (std::find(info.words.begin(), info.words.end(), value) == info.words.end()) {
      refuse(info, value);
    }
    for (const DTypeInfo& type : kDTypes) {
      if (type.name == value) o.session.kv_type = type.dtype;
    }
  };
  return r;
}

/// Another policy keeps of the parameters those that it has.
OptionRow policy_row() {
  OptionRow r = row(Group::session, Type::word, {"kv_policy", "What is kept of a prompt"},
                    [](const auto& o) -> auto& { return o.session.kv.name; });
  r.info.words = policy_names();
  r.info.range = fmt::format("{}", fmt::join(r.info.words, ", "));
  r.set = [](EngineOptions& o, std::string_view value) {
    const PolicyInfo& policy = policy_info(value);
    PolicyConfig& kv = o.session.kv;
    kv.name = policy.name;
    std::erase_if(kv.params, [&](const auto& p) { return policy.find(p.first) == nullptr; });
  };
  return r;
}

OptionRow stop_row() {
  OptionRow r;
  r.info.name = "stop";
  r.info.group = Group::answer;
  r.info.type = Type::texts;
  r.info.help = "The answer ends before this text; may be set several times";
  r.set = [](EngineOptions& o, std::string_view value) {
    TextStream({std::string(value)});  // refuses what no stop string can be
    o.answer.stops.emplace_back(value);
  };
  r.get = [](const EngineOptions& o) { return nlohmann::json(o.answer.stops).dump(); };
  return r;
}

void add_model_rows(std::vector<OptionRow>& rows) {
  constexpr Group kGroup = Group::model;
  rows.push_back(text(kGroup, {"model", "A GGUF file (of a split: the first) or Hugging Face folder"},
                      [](auto& o) -> auto& { return o.model.path; }));
  rows.push_back(word(kGroup, {"device", "Where the model runs"},
                      [](auto& o) -> auto& { return o.model.device; },
                      {"automatic", "cpu", "cuda", "reference"}));
  rows.push_back(word(kGroup, {"compute", "Precision of matrix products"},
                      [](auto& o) -> auto& { return o.model.compute; },
                      {"automatic", "f32", "bf16"}));
  rows.push_back(word(kGroup, {"weights", "Where weights are read from while decoding"},
                      [](auto& o) -> auto& { return o.model.weights; },
                      {"automatic", "mapped", "huge_pages", "copy"}));
  rows.push_back(whole(kGroup, {"n_threads", "Threads; 0: one for each processor"},
                       [](auto& o) -> auto& { return o.model.n_threads; }, 0, kMostThreads));
  rows.push_back(flag(kGroup, {"check_tensors", "Refuse a model with weights that are not finite"},
                      [](auto& o) -> auto& { return o.model.check_tensors; }));
}

void add_session_rows(std::vector<OptionRow>& rows) {
  constexpr Group kGroup = Group::session;
  rows.push_back(whole(kGroup, {"n_ctx", "Most tokens, prompt and answer; 0: the model's context"},
                       [](auto& o) -> auto& { return o.session.n_ctx; }, 0, kMostTokens));
  rows.push_back(kv_type_row());
  rows.push_back(bytes(kGroup, {"kv_memory", "Budget as bytes of all kept rows; 0: kv_budget rows"},
                       [](auto& o) -> auto& { return o.session.kv_memory; }));
  rows.push_back(whole(kGroup,
                       {"kv_decode_limit", "Compress again before a layer has more rows; 0: never"},
                       [](auto& o) -> auto& { return o.session.kv_decode_limit; }, 0, kMostTokens));
  rows.push_back(flag(kGroup, {"kv_refresh", "Keep every row for the selection of later turns"},
                      [](auto& o) -> auto& { return o.session.kv_refresh; }));
  rows.push_back(whole(kGroup, {"chunk", "Prompt tokens computed at a time"},
                       [](auto& o) -> auto& { return o.session.chunk; }, 1, kMostChunk));
  rows.push_back(whole(kGroup, {"decode_reserve", "Rows allocated at once for generated tokens"},
                       [](auto& o) -> auto& { return o.session.decode_reserve; }, 1, kMostReserve));
  rows.push_back(bytes(kGroup, {"memory_limit", "Bytes that reading may take; 0: what is free"},
                       [](auto& o) -> auto& { return o.session.memory_limit; }));
  rows.push_back(text(kGroup, {"spill_dir", "Folder for hidden states that memory has no room for"},
                      [](auto& o) -> auto& { return o.session.spill_dir; }));
  rows.push_back(policy_row());
}

void add_sampler_rows(std::vector<OptionRow>& rows) {
  using S = SamplerConfig;
  constexpr Group kGroup = Group::sampler;
  constexpr int kMostInt = std::numeric_limits<int>::max();
  rows.push_back(real(kGroup, {"temperature", "0: always the likeliest token"},
                      [](auto& o) -> auto& { return o.sampler.temperature; }, 0,
                      S::kMostTemperature));
  rows.push_back(whole(kGroup, {"top_k", "Only the k likeliest tokens; 0: off"},
                       [](auto& o) -> auto& { return o.sampler.top_k; }, 0, kMostInt));
  rows.push_back(real(kGroup, {"top_p", "Only the likeliest tokens of this probability; 1: off"},
                      [](auto& o) -> auto& { return o.sampler.top_p; }, 0, 1));
  rows.push_back(real(kGroup, {"min_p", "Only tokens of this share of the best one; 0: off"},
                      [](auto& o) -> auto& { return o.sampler.min_p; }, 0, 1));
  rows.push_back(real(kGroup, {"repeat_penalty", "Makes repeated tokens unlikelier; 1: off"},
                      [](auto& o) -> auto& { return o.sampler.repeat_penalty; }, S::kLeastPenalty,
                      S::kMostPenalty));
  rows.push_back(whole(kGroup, {"repeat_last_n", "Tokens that penalties look back; -1: all"},
                       [](auto& o) -> auto& { return o.sampler.repeat_last_n; }, -1, kMostInt));
  rows.push_back(real(kGroup, {"presence_penalty", "Taken off tokens that were there already"},
                      [](auto& o) -> auto& { return o.sampler.presence_penalty; },
                      -S::kMostCountPenalty, S::kMostCountPenalty));
  rows.push_back(real(kGroup, {"frequency_penalty", "The same for each time that they were there"},
                      [](auto& o) -> auto& { return o.sampler.frequency_penalty; },
                      -S::kMostCountPenalty, S::kMostCountPenalty));
  rows.push_back(whole(kGroup, {"seed", "The same seed draws the same answer"},
                       [](auto& o) -> auto& { return o.sampler.seed; }, 0,
                       std::numeric_limits<int64_t>::max()));
}

void add_answer_rows(std::vector<OptionRow>& rows) {
  constexpr Group kGroup = Group::answer;
  rows.push_back(whole(kGroup, {"max_tokens", "Tokens of an answer; -1: until the context is full"},
                       [](auto& o) -> auto& { return o.answer.max_tokens; }, -1, kMostTokens));
  rows.push_back(stop_row());
  rows.push_back(flag(kGroup, {"one_paragraph", "The answer ends with its first paragraph"},
                      [](auto& o) -> auto& { return o.answer.one_paragraph; }));
  rows.push_back(flag(kGroup, {"ignore_eos", "Never choose a token that ends the answer"},
                      [](auto& o) -> auto& { return o.answer.ignore_eos; }));
  rows.push_back(flag(kGroup, {"shows_control_tokens", "Control tokens are part of the text"},
                      [](auto& o) -> auto& { return o.answer.shows_control_tokens; }));
  rows.push_back(whole(kGroup, {"top_logprobs", "Alternatives with each token; -1: none"},
                       [](auto& o) -> auto& { return o.answer.top_logprobs; }, -1, 1 << 20));
}

}  // namespace

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> table = [] {
    std::vector<OptionRow> rows;
    add_model_rows(rows);
    add_session_rows(rows);
    add_sampler_rows(rows);
    add_answer_rows(rows);
    const EngineOptions defaults;
    for (OptionRow& r : rows) {
      if (r.info.type != Type::texts) r.info.default_text = r.get(defaults);
    }
    return rows;
  }();
  return table;
}

}  // namespace snapkv
