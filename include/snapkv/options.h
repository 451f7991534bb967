// SPDX-License-Identifier: MIT
// The options of models, sessions, samplers and answers by name and as text, for programs that take
// them from elsewhere: bindings of other languages, files, forms.
//
//   snapkv::EngineOptions options;
//   snapkv::set_option(options, "model", "model.gguf");
//   snapkv::set_option(options, "kv_budget", "512");
//   snapkv::set_option(options, "temperature", "0.2");
//   const auto model = snapkv::Model::load(options.model);
//   snapkv::Session session(model, options.session);
//
// What an option means is said where its struct has it; list_options() has a line on each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "snapkv/engine.h"
#include "snapkv/generator.h"
#include "snapkv/option_table.h"

namespace snapkv {

/// Everything that can be set by name. The selection policy is kDefaultPolicy unless kv_policy says
/// otherwise, tokens are guessed by lookup, and seed is 0.
struct EngineOptions {
  ModelOptions model = {};
  SessionOptions session = {.kv = {.name = kDefaultPolicy}, .draft = Draft::lookup};
  SamplerConfig sampler = {};
  GeneratorOptions answer = {};
};

/// The tables of the engine's options. The path of a model is "model", the name of the policy
/// "kv_policy"; list_options() adds the policy's parameters and "stop".
const OptionTable<ModelOptions>& model_option_table();
const OptionTable<SessionOptions>& session_option_table();
const OptionTable<SamplerConfig>& sampler_option_table();
const OptionTable<GeneratorOptions>& generator_option_table();

/// All options, those of the policy last: "kv_kernel_size" is there if the policy has kernel_size.
/// They are set by OptionInfo::option. Throws kUsage for an unknown policy.
std::vector<OptionInfo> list_options(std::string_view policy = kDefaultPolicy);
/// The same as a JSON array of objects: name (OptionInfo::option), group, type, default and range
/// as texts, least and most of numbers, words, help.
std::string list_options_json(std::string_view policy = kDefaultPolicy);

/// Sets an option to the value that `text` writes. Setting kv_policy to another policy forgets the
/// parameters that the new one does not have. Throws kUsage naming option, text and range, or the
/// options that there are.
void set_option(EngineOptions& options, std::string_view name, std::string_view text);
/// The value in force as set_option() takes it; several texts are a JSON array. Throws kUsage as
/// set_option().
std::string option_text(const EngineOptions& options, std::string_view name);

}  // namespace snapkv
