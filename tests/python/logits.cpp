// SPDX-License-Identifier: MIT
// Writes the logits of a session to stdout, f32 after f32, through the C++ API: after a prompt, and
// after each further token.
//
//   snapkv_logits MODEL TEXT BUDGET TOKEN...
#include <cstdio>
#include <cstdlib>

#include "snapkv/engine.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    const auto model = snapkv::Model::load({.path = argv[1], .n_threads = 1});
    const snapkv::PolicyConfig kv{.name = "snapkv",
                                  .budget = std::atol(argv[3]),
                                  .window_size = 16,
                                  .params = {{"kernel_size", int64_t{15}}}};
    snapkv::Session session(model, {.kv = kv});
    session.prefill(model->tokenize(argv[2]));
    for (int i = 4;; ++i) {
      const auto logits = session.logits();
      std::fwrite(logits.data(), sizeof(float), logits.size(), stdout);
      if (i == argc) return 0;
      session.decode(std::atoi(argv[i]));
    }
  } catch (const snapkv::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.code());
  }
}
