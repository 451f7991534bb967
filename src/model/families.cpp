// SPDX-License-Identifier: MIT
// The families: one row each, which says only what differs from Llama (family.h).
#include <array>
#include <string>

#include "base/error.h"
#include "format/gguf.h"
#include "model/family.h"

namespace snapkv {
namespace {

constexpr std::array kFamilies = {
    Family{.name = "llama", .models = "Llama 1 to 3, Mistral, TinyLlama, SmolLM"},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family& find_family(const GgufFile& file) {
  const std::string& wanted = file.get_string("general.architecture");
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == wanted) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  fail(ErrorCode::kBadModel, "{}: general.architecture is \"{}\"; supported: {}", file.path(),
       wanted, known);
}

}  // namespace snapkv
