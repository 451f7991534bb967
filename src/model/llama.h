// SPDX-License-Identifier: MIT
// Architecture `llama`: Llama 1 to 3, Mistral, TinyLlama, SmolLM and others of the same form.
#pragma once

#include <memory>

#include "model/architecture.h"

namespace snapkv {

std::unique_ptr<Architecture> make_llama(const GgufFile& file, Backend& backend);

}  // namespace snapkv
