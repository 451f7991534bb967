// SPDX-License-Identifier: MIT
#include "huggingface/chameleon_config.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "huggingface/config.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"
#include "huggingface/rope_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kFirstPicture = 4, kEndOfPictures = 8196;  // of the published models

/// The ids of pictures' tokens, which the class does not let a text have: [begin, end).
void read_pictures(const JsonFields& c, ChameleonConfig& chameleon) {
  constexpr std::string_view kKey = "vocabulary_map", kPrefix = "IMGIMG";
  const Json* const map = c.find(kKey);
  if (map == nullptr) c.bad(kKey, "is missing, which says which tokens are those of pictures");
  if (!map->is_object()) c.bad(kKey, "is {}, expected an object", shown(*map));
  std::vector<int64_t> ids;
  for (const auto& [name, id] : map->items()) {
    if (!std::string_view(name).starts_with(kPrefix)) continue;
    if (!id.is_number_integer()) c.bad(kKey, "has {} as the id of {}", shown(id), printable(name));
    ids.push_back(id.get<int64_t>());
  }
  if (ids.empty()) c.bad(kKey, "has no token that begins with {}", kPrefix);
  std::sort(ids.begin(), ids.end());
  chameleon.first_picture = ids.front();
  chameleon.end_of_pictures = ids.back() + 1;
  const bool in_order = std::adjacent_find(ids.begin(), ids.end(), [](int64_t a, int64_t b) {
                          return b != a + 1;
                        }) == ids.end();
  if (!in_order || ids.front() < 0) {
    c.bad(kKey, "has {} pictures' tokens from {} to {}, expected one after another", ids.size(),
          ids.front(), ids.back());
  }
}

}  // namespace

void read_chameleon(const JsonFields& c, Config& config) {
  config.chameleon.norms_after = c.flag("swin_norm", false);
  read_pictures(c, config.chameleon);
  if (config.chameleon.end_of_pictures > config.n_vocab) {
    c.bad("vocabulary_map", "has the id {}, expected less than vocab_size, {}",
          config.chameleon.end_of_pictures - 1, config.n_vocab);
  }
  read_rope(c, config);
}

// Heads rotate halves, as in the folder, for which files of llama.cpp's have to reorder the
// norms of heads too.
void add_chameleon_keys(const Config& config, Keys& keys) {
  const ChameleonConfig& chameleon = config.chameleon;
  keys.text("snapkv.rope.layout", "neox");
  keys.flag("chameleon.swin_norm", chameleon.norms_after);
  keys.u32("chameleon.rope.dimension_count", config.n_rot);
  if (chameleon.first_picture != kFirstPicture || chameleon.end_of_pictures != kEndOfPictures) {
    keys.u32("snapkv.first_picture_token", chameleon.first_picture);
    keys.u32("snapkv.end_of_picture_tokens", chameleon.end_of_pictures);
  }
}

}  // namespace snapkv::huggingface
