// SPDX-License-Identifier: MIT
// The architectures: one line each.
#include <array>
#include <string>

#include "base/error.h"
#include "format/gguf.h"
#include "model/architecture.h"
#include "model/llama.h"

namespace snapkv {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Architecture> (*make)(const GgufFile&, Backend&);
};

constexpr std::array kArchitectures = {
    Entry{"llama", make_llama},
};

}  // namespace

std::unique_ptr<Architecture> Architecture::make(const GgufFile& file, Backend& backend) {
  const std::string& wanted = file.get_string("general.architecture");
  std::string known;
  for (const Entry& entry : kArchitectures) {
    if (entry.name == wanted) return entry.make(file, backend);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  fail(ErrorCode::kBadModel, "{}: general.architecture is \"{}\"; supported: {}", file.path(),
       wanted, known);
}

}  // namespace snapkv
