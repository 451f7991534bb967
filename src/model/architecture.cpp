// SPDX-License-Identifier: MIT
#include "model/architecture.h"

#include "model/decoder.h"

namespace snapkv {

std::unique_ptr<Architecture> Architecture::make(const GgufFile& file) {
  return make_decoder(file, read_model_spec(file));
}

}  // namespace snapkv
