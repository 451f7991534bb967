// SPDX-License-Identifier: MIT
// The tables of the engine's options (snapkv/options.h). An option of the model, a session, the
// sampler or an answer is a member of its struct and a row here: command, server and bindings have
// it then.
#include "backend/registry.h"
#include "base/option_row.h"
#include "policy/params.h"
#include "snapkv/options.h"

namespace snapkv {
namespace {

using Group = OptionInfo::Group;

template <typename Struct>
OptionTable<Struct> make_table(Group group, std::vector<OptionRow<Struct>> rows,
                               const Struct& defaults = {}) {
  for (OptionRow<Struct>& row : rows) row.info.group = group;
  return OptionTable<Struct>(std::move(rows), defaults);
}

OptionRow<ModelOptions> device_row() {
  const std::string help = "Where the model runs; " + device_help();
  OptionRow<ModelOptions> row =
      option(&ModelOptions::device, {.name = "device", .help = help.c_str()});
  row.info.type = OptionInfo::Type::word;
  row.info.words = device_names();
  return row;
}

OptionRow<SessionOptions> kv_type_row() {
  OptionRow<SessionOptions> row =
      word_option(&SessionOptions::kv_type,
                  {.name = "kv_type", .help = "Type of the cache; q8_0 takes half of f16's memory"},
                  {"f32", "f16", "bf16", "q8_0"});
  row.set = [](SessionOptions& o, const OptionValue& value) {
    for (const DTypeInfo& type : kDTypes) {
      if (type.name == std::get<std::string>(value)) o.kv_type = type.dtype;
    }
  };
  row.get = [](const SessionOptions& o) {
    const auto i = static_cast<int64_t>(o.kv_type);
    const bool is_known = i >= 0 && i < std::ssize(kDTypes);
    return OptionValue(is_known ? std::string(name(o.kv_type)) : std::to_string(i));
  };
  return row;
}

OptionRow<SessionOptions> kv_policy_row() {
  OptionRow<SessionOptions> row;
  row.info = make_info({.name = "kv_policy", .help = "What is kept of a prompt"});
  row.info.type = OptionInfo::Type::word;
  row.info.words = policy_names();
  row.set = [](SessionOptions& o, const OptionValue& value) {
    const PolicyInfo& policy = policy_info(std::get<std::string>(value));
    o.kv.name = policy.name;  // which keeps of the parameters those that it has
    std::erase_if(o.kv.params, [&](const auto& p) { return policy.find(p.first) == nullptr; });
  };
  row.get = [](const SessionOptions& o) { return OptionValue(o.kv.name); };
  return row;
}

}  // namespace

const OptionTable<ModelOptions>& model_option_table() {
  using O = ModelOptions;
  static const auto table = make_table<O>(
      Group::model,
      {option(&O::path, {.name = "model",
                         .help = "GGUF file (of a split one: the first part), or folder of a "
                                 "Hugging Face model"}),
       device_row(),
       word_option(&O::compute,
                   {.name = "compute",
                    .help = "Precision of matrix products; auto: activations are rounded to 8 bits "
                            "or to bf16, whichever is fastest; bf16: to 8 bits while decoding "
                            "only; f32: nothing is rounded"},
                   {"auto", "f32", "bf16"}),
       word_option(&O::weights,
                   {.name = "weights",
                    .help = "Decode from the mapped file (mapped) or, faster, from a copy in huge "
                            "pages made at the start (huge); auto: the copy is made while the "
                            "model is used, if there is memory; copy: read the whole model at the "
                            "start and close its files, which may then change"},
                   {"auto", "mapped", "huge", "copy"}),
       option(&O::n_threads, {.name = "n_threads",
                              .help = "Threads; 0: one for each processor that the process may use",
                              .least = 0,
                              .most = kMostThreads}),
       option(&O::check_tensors, {.name = "check_tensors",
                                  .help = "Read all weights first, and refuse models with "
                                          "infinities or NaNs among them"}),
       word_option(&O::rope_scaling,
                   {.name = "rope_scaling",
                    .help = "How positions are scaled for longer contexts; auto: as the model's "
                            "file says, by YaRN with yarn_factor; none: not at all; yarn: by YaRN, "
                            "where the model's makers publish a factor"},
                   {"auto", "none", "yarn"}),
       option(&O::yarn_factor, {.name = "yarn_factor",
                                .help = "YaRN's factor: the context becomes so many times as long; "
                                        "0: the file's",
                                .least = 0,
                                .most = 1024}),
       option(&O::yarn_orig_ctx, {.name = "yarn_orig_ctx",
                                  .help = "The context that the model was trained with, for YaRN; "
                                          "0: the file's",
                                  .least = 0,
                                  .most = kMostTokens}),
       option(&O::draft_model,
              {.name = "draft_model",
               .help = "A smaller model with the same vocabulary, which guesses what the model then "
                       "checks (draft model): GGUF file or folder; CPU only"})});
  return table;
}

const OptionTable<SessionOptions>& session_option_table() {
  using O = SessionOptions;
  static const auto table = make_table<O>(
      Group::session,
      {option(&O::n_ctx, {.name = "n_ctx",
                          .help = "Most tokens, prompt and answer; 0: the model's own",
                          .least = 0,
                          .most = kMostTokens}),
       kv_type_row(),
       bytes_option(&O::kv_memory,
                    {.name = "kv_memory",
                     .help = "The largest budget whose cache takes no more than this, as in "
                             "256MiB, room for the first generated tokens included; 0: off"}),
       option(&O::kv_decode_limit,
              {.name = "kv_decode_limit",
               .help = "Compress to the budget again when generated tokens have filled the cache "
                       "to this many rows per layer and KV head, from all rows with kv_refresh; 0: "
                       "never",
               .least = 0,
               .most = kMostTokens}),
       option(
           &O::kv_refresh,
           {.name = "kv_refresh",
            .help =
                "Keep the uncompressed rows as well, in memory or in files of spill_dir, so that "
                "every further turn reads and chooses from all of them"}),
       option(&O::chunk, {.name = "chunk",
                          .help = "Prompt tokens computed at a time; bounds activations; 0: 512, in "
                                  "mixtures of experts up to 2048",
                          .least = 0,
                          .most = kMostChunk}),
       word_option(&O::prefill_attention,
                   {.name = "prefill_attention",
                    .help = "What tokens of a long prompt attend to; dense: all before them; "
                            "sparse: the blocks of 128 that matter to them, faster and not exact, "
                            "CPU only"},
                   {"dense", "sparse"}),
       option(&O::attention_share,
              {.name = "attention_share",
               .help = "With sparse attention, the share of each head's attention that the chosen "
                       "blocks are to have",
               .least = 0.1,
               .most = 1}),
       option(&O::decode_reserve, {.name = "decode_reserve",
                                   .help = "Rows allocated at once for generated tokens",
                                   .least = 1,
                                   .most = kMostReserve}),
       word_option(&O::draft,
                   {.name = "draft",
                    .help = "Guess several tokens and check them in one step; the answer stays the "
                            "same; lookup: those that came after the last ones where these stood "
                            "before, for quotes, edited code and structured data; self: also those "
                            "that the kept rows find likely, checked by all rows, which are kept "
                            "too: the full cache's answer, sooner after a long prompt; model: also "
                            "those of draft_model"},
                   {"off", "lookup", "self", "model"}),
       option(&O::draft_max, {.name = "draft_max",
                              .help = "Most tokens guessed for a step; fewer where that is faster",
                              .least = 1,
                              .most = kMostStepTokens - 1}),
       option(&O::draft_min, {.name = "draft_min",
                              .help = "As many guessed tokens are checked at least, even where that "
                                      "is slower",
                              .least = 0,
                              .most = kMostStepTokens - 1}),
       option(&O::draft_ctx, {.name = "draft_ctx",
                              .help = "Context of draft_model, which reads the end of longer texts",
                              .least = 256,
                              .most = kMostTokens}),
       bytes_option(&O::memory_limit,
                    {.name = "memory_limit",
                     .help = "Refuse prompts that would need more, as in 8G; 0: what the system "
                             "has left"}),
       option(&O::spill_dir, {.name = "spill_dir",
                              .help = "Keep a long prompt's hidden states in a temporary file in "
                                      "this folder, not in memory"}),
       kv_policy_row()},
      {.kv = {.name = kDefaultPolicy}, .draft = Draft::lookup});
  return table;
}

const OptionTable<SamplerConfig>& sampler_option_table() {
  using O = SamplerConfig;
  static const auto table = make_table<O>(
      Group::sampler,
      {option(&O::temperature, {.name = "temperature",
                                .help = "Temperature; 0: always the likeliest token",
                                .least = 0,
                                .most = 1000}),
       option(&O::top_k,
              {.name = "top_k", .help = "Only the k likeliest tokens; 0: off", .least = 0}),
       option(&O::typical_p,
              {.name = "typical_p",
               .help = "Only tokens of this probability together whose surprise is nearest to what "
                       "the model expects; 1: off",
               .least = 0,
               .most = 1}),
       option(&O::top_p, {.name = "top_p",
                          .help = "Only the likeliest tokens that make up this probability; 1: off",
                          .least = 0,
                          .most = 1}),
       option(&O::min_p,
              {.name = "min_p",
               .help = "Only tokens with this share of the best one's probability; 0: off",
               .least = 0,
               .most = 1}),
       option(&O::repeat_penalty, {.name = "repeat_penalty",
                                   .help = "Makes recent tokens less likely; 1: off",
                                   .least = 0.001,
                                   .most = 1000}),
       option(&O::repeat_last_n, {.name = "repeat_last_n",
                                  .help = "Recent tokens for all penalties; 0: off, -1: all",
                                  .least = -1}),
       option(
           &O::presence_penalty,
           {.name = "presence_penalty",
            .help = "Makes tokens less likely that are among the recent ones; below 0: likelier; "
                    "0: off",
            .least = -2,
            .most = 2}),
       option(&O::frequency_penalty, {.name = "frequency_penalty",
                                      .help = "The same for each time that they are among them",
                                      .least = -2,
                                      .most = 2}),
       option(&O::seed, {.name = "seed", .help = "The same seed gives the same answer; -1: another one each time"})});
  return table;
}

const OptionTable<GeneratorOptions>& generator_option_table() {
  using O = GeneratorOptions;
  static const auto table = make_table<O>(
      Group::answer,
      {option(&O::max_tokens,
              {.name = "max_tokens",
               .help = "Most tokens of an answer; -1: until it ends or the context is full",
               .least = -1,
               .most = kMostTokens}),
       option(&O::one_paragraph,
              {.name = "one_paragraph", .help = "The answer ends with its first paragraph"}),
       option(&O::ignore_eos, {.name = "ignore_eos", .help = "Never let the model end its answer"}),
       option(&O::shows_control_tokens,
              {.name = "shows_control_tokens", .help = "Control tokens are part of the text"}),
       option(&O::top_logprobs, {.name = "top_logprobs",
                                 .help = "Alternatives reported with each token; -1: none",
                                 .least = -1,
                                 .most = 1 << 20})});
  return table;
}

}  // namespace snapkv
