// SPDX-License-Identifier: MIT
// The chat template of a folder: chat_template.jinja, or a text or an array of named texts in
// tokenizer_config.json.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "format/mmap_file.h"
#include "huggingface/vocabulary.h"

namespace snapkv::huggingface {
namespace {

constexpr uint64_t kMaxTemplateBytes = 1 << 20;
constexpr const char* kKey = "tokenizer.chat_template";

void set(Keys& keys, const std::string& key, std::string text, const std::string& file) {
  if (text.size() > kMaxTemplateBytes) {
    fail(ErrorCode::kBadModel, "'{}': a chat template of {} bytes, expected at most {}", file,
         text.size(), kMaxTemplateBytes);
  }
  keys.text(key, std::move(text));
}

void set_named(Keys& keys, const JsonFields& named, const std::string& file) {
  const std::string& name = named.text("name");
  const std::string key = name == "default" ? kKey : std::string(kKey) + "." + printable(name);
  set(keys, key, named.text("template"), file);
}

}  // namespace

void add_template_keys(const std::string& folder, Keys& keys) {
  const std::string config_path = folder + "/tokenizer_config.json";
  if (const auto json = read_json_if_there(config_path, kTokenizerLimits)) {
    const JsonFields config(*json, config_path);
    const Json* value = config.find("chat_template");
    if (value != nullptr && value->is_array()) {
      for (const Json& item : *value) {
        if (!item.is_object()) {
          config.bad("chat_template", "holds {}, expected objects", shown(item));
        }
        set_named(keys, JsonFields(item, config_path, "chat_template[]."), config_path);
      }
    } else if (value != nullptr) {
      set(keys, kKey, config.text("chat_template"), config_path);
    }
  }
  const std::string path = folder + "/chat_template.jinja";  // takes precedence, as in transformers
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return;
  const MmapFile file(path, FileAccess::copied);
  set(keys, kKey,
      std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()), path);
}

}  // namespace snapkv::huggingface
