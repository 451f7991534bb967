// SPDX-License-Identifier: MIT
#include "cli/generate/generation.h"

#include "cli/common/signals.h"

namespace snapkv::cli {

void generate(Session& session, Sampler& sampler, const GeneratorOptions& limits,
              const TokenFn& on_token, Generation& generation) {
  GeneratorOptions options = limits;
  options.cancelled = interrupted;
  Generator generator(session, sampler, std::move(options));
  const auto add = [&](const std::string& text) {
    generation.text += text;
    if (on_token) on_token(text, std::ssize(generation.ids));
  };
  const auto add_rest = [&] {
    if (const std::string rest = generator.rest(); !rest.empty()) add(rest);
    generation.stop = generator.stop_string();
    generation.n_drafted += generator.n_drafted();
    generation.n_accepted += generator.n_accepted();
  };
  try {
    while (generator.step()) {
      generation.ids.push_back(generator.next_token());
      add(generator.token().text);
    }
  } catch (const Error&) {
    generator.stop(StopReason::cancelled);
    add_rest();
    throw;
  }
  add_rest();
  generation.stop_reason = generator.stop_reason();
}

}  // namespace snapkv::cli
