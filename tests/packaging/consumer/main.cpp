// SPDX-License-Identifier: MIT
// The smallest program that uses the installed library: it asks the demo's model for a number in
// the prompt.
#include <snapkv/engine.h>

#include <iostream>
#include <string>

int main() {
  if (std::string(snapkv::version()) != EXPECTED_VERSION) {
    std::cerr << "library " << snapkv::version() << ", package " << EXPECTED_VERSION << '\n';
    return 1;
  }
  try {
    const auto model = snapkv::Model::load({.path = DEFAULT_MODEL, .n_threads = 1});
    snapkv::Session session(model, {.n_ctx = 512});
    session.prefill(
        model->tokenize("The secret number of Paris is 40718.\n\n"
                        "Question: What is the secret number of Paris?\n"
                        "Answer: The secret number of Paris is"));
    snapkv::Sampler sampler({.temperature = 0});
    for (int i = 0; i < 16; ++i) {
      const int32_t id = sampler.sample(session.logits());
      const std::string piece = model->piece(id);
      if (model->is_end_of_generation(id) || piece.find('\n') != std::string::npos) break;
      std::cout << piece << std::flush;
      session.decode(id);
    }
    std::cout << '\n';
  } catch (const snapkv::Error& e) {
    std::cerr << e.what() << '\n';
    return static_cast<int>(e.code());
  }
  return 0;
}
