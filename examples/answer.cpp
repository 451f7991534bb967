// SPDX-License-Identifier: MIT
// C++: one document, several questions. The document is read once; each question chooses the rows
// that it needs.
//
//   find_package(snapkv REQUIRED)                       # after make install
//   target_link_libraries(answer PRIVATE snapkv::snapkv)
//
//   question="Question: What is the secret number of Rome? Answer: The secret number of Rome is"
//   ./answer models/needle.gguf examples/facts.txt "$question"
#include <snapkv/generator.h>
#include <snapkv/prefill.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

/// Reads the document into a prefix: every row of every layer.
std::shared_ptr<const snapkv::KvPrefix> read_document(
    const std::shared_ptr<const snapkv::Model>& model, const snapkv::SessionOptions& options,
    const std::string& text) {
  snapkv::Session session(model, options);
  snapkv::PrefillPrompt prompt{.sessions = {&session}, .tokens = model->tokenize(text)};
  prompt.makes_prefix = true;
  snapkv::Prefill prefill(std::move(prompt));
  while (!prefill.step()) std::cerr << "\rread " << static_cast<int>(100 * prefill.fraction()) << "%";
  std::cerr << '\n';
  return prefill.take_prefix();
}

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: " << argv[0] << " MODEL FILE QUESTION...\n";
    return 2;
  }
  try {
    std::ifstream file(argv[2], std::ios::binary);
    if (!file) throw std::runtime_error(std::string(argv[2]) + ": cannot be read");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto model = snapkv::Model::load({.path = argv[1]});
    const snapkv::SessionOptions options{.kv = {.name = "snapkv-max", .budget = 64}};
    const auto document = read_document(model, options, text);
    for (int i = 3; i < argc; ++i) {
      snapkv::Session session(model, options);
      const auto question = model->tokenize(std::string("\n") + argv[i], /*add_special=*/false);
      snapkv::prefill_after(session, document, question);
      snapkv::Sampler sampler({.temperature = 0});
      snapkv::Generator answer(session, sampler, {.max_tokens = 20, .stops = {"\n"}});
      std::cout << argv[i];
      while (answer.step()) std::cout << answer.token().text << std::flush;
      std::cout << answer.rest() << '\n';
    }
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
