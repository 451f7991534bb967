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

namespace snapkv {

/// Everything that can be set by name. The selection policy is kDefaultPolicy unless kv_policy says
/// otherwise; seed is 0.
struct EngineOptions {
  ModelOptions model = {};
  SessionOptions session = {.kv = {.name = kDefaultPolicy}};
  SamplerConfig sampler = {};
  GeneratorOptions answer = {};
};

/// One option.
struct OptionInfo {
  enum class Group { model, session, sampler, answer };
  /// `bytes`: a whole number with an optional unit, "256MiB". `texts`: setting it adds a text.
  enum class Type { boolean, integer, real, bytes, word, text, texts };

  std::string name;  ///< "kv_budget"
  Group group = Group::model;
  Type type = Type::text;
  std::string default_text;        ///< as set_option() would take it; empty for texts
  std::string range;               ///< "from 0 to 1"; empty for texts
  std::vector<std::string> words;  ///< of words: those that are known
  std::string help;                ///< one line
};
/// "model", "session", "sampler", "answer"
std::string_view name(OptionInfo::Group group);
/// "boolean", "integer", "real", "bytes", "word", "text", "texts"
std::string_view name(OptionInfo::Type type);

/// All options, those of the policy last: "kv_kernel_size" is there if the policy has kernel_size.
/// Throws kUsage for an unknown policy.
std::vector<OptionInfo> list_options(std::string_view policy = kDefaultPolicy);
/// The same as a JSON array of objects with the members of OptionInfo.
std::string list_options_json(std::string_view policy = kDefaultPolicy);

/// Sets an option to the value that `text` writes. Setting kv_policy to another policy forgets the
/// parameters that the new one does not have. Throws kUsage naming option, text and range, or the
/// options that there are.
void set_option(EngineOptions& options, std::string_view name, std::string_view text);
/// The value in force as set_option() takes it; several texts are a JSON array. Throws kUsage as
/// set_option().
std::string option_text(const EngineOptions& options, std::string_view name);

}  // namespace snapkv
