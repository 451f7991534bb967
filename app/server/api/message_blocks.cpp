// SPDX-License-Identifier: MIT
#include "server/api/message_blocks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace snapkv::server {
namespace {

/// Claude Code's, with a hash of each request, at the beginning of a block of the system message.
constexpr std::string_view kAccounting = "x-anthropic-billing-header";

std::string without_accounting(std::string text, std::vector<std::string>& notes) {
  if (!text.starts_with(kAccounting)) return text;
  notes.push_back(fmt::format("system: the line {} is left out", kAccounting));
  const size_t end = text.find('\n');
  return end == std::string::npos ? "" : text.substr(end + 1);
}

std::string blocks_text(const Fields& owner, const char* name);

/// "<document title="...">", with the attributes that the block has.
std::string tag(const Fields& block, const char* name,
                std::initializer_list<const char*> attributes) {
  std::string text = std::string("<") + name;
  for (const char* attribute : attributes) {
    const auto value = block.text(attribute);
    if (value && !value->empty()) text += fmt::format(" {}={}", attribute, to_text(Json(*value)));
  }
  return text + ">\n";
}

/// What a document says, without its title.
std::string document_source(const Fields& block) {
  (void)block.need("source");
  const Fields source(*block.object("source"), block.name("source") + ".");
  const std::string type = source.needed_text("type");
  if (type == "text") return source.needed_text("data");
  if (type == "content") return blocks_text(source, "content");
  const std::string media = source.text("media_type").value_or(type);
  source.refuse("type", fmt::format("documents of {} can't be read here: send their text, as "
                                    "{{\"type\": \"text\", \"data\": ...}}",
                                    short_text(Json(media))));
}

std::string document_text(const Fields& block) {
  std::string text = tag(block, "document", {"title"});
  if (const auto context = block.text("context"); context && !context->empty()) {
    text += *context + "\n\n";
  }
  return text + document_source(block) + "\n</document>\n\n";
}

std::string search_result_text(const Fields& block) {
  return tag(block, "search_result", {"title", "source"}) + blocks_text(block, "content") +
         "\n</search_result>\n\n";
}

/// Nothing for blocks of other types.
std::optional<std::string> block_text(const Fields& block) {
  const std::string type = block.needed_text("type");
  if (type == "text") return block.needed_text("text");
  if (type == "document") return document_text(block);
  if (type == "search_result") return search_result_text(block);
  return std::nullopt;
}

[[noreturn]] void refuse_block(const Fields& block) {
  block.refuse("type",
               "this model reads text only: blocks of type text, document, search_result, tool_use "
               "(of the assistant), tool_result (of the user) and thinking are possible, not " +
                   short_text(block.need("type")));
}

/// A string, or blocks that are text.
std::string blocks_text(const Fields& owner, const char* name) {
  const Json& content = owner.need(name);
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) owner.refuse(name, "a string or an array of blocks", content);
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Fields block(content[i], fmt::format("{}[{}].", owner.name(name), i));
    const std::optional<std::string> one = block_text(block);
    if (!one) refuse_block(block);
    text += *one;
  }
  return text;
}

/// The content of one message.
class MessageReader {
 public:
  MessageReader(std::string role, Json& messages) : role_(std::move(role)), messages_(messages) {}

  void read(const Fields& message) {
    const Json& content = message.need("content");
    if (content.is_string()) {
      text_ = content.get<std::string>();
    } else if (content.is_array()) {
      for (size_t i = 0; i < content.size(); ++i) {
        add_block(Fields(content[i], fmt::format("{}[{}].", message.name("content"), i)));
      }
    } else {
      message.refuse("content", "a string or an array of blocks", content);
    }
    if (text_.empty() && calls_.empty() && has_results_) return;
    Json made = {{"role", role_}, {"content", text_}};
    if (!calls_.empty()) made["tool_calls"] = calls_;
    messages_.push_back(made);
  }

 private:
  void add_block(const Fields& block) {
    const std::string type = block.needed_text("type");
    if (const auto text = block_text(block)) {
      text_ += *text;
    } else if (type == "tool_use" && role_ == "assistant") {
      const Json* input = block.object("input");
      calls_.push_back({{"id", block.needed_text("id")},
                        {"type", "function"},
                        {"function",
                         {{"name", block.needed_text("name")},
                          {"arguments", input != nullptr ? *input : Json::object()}}}});
    } else if (type == "tool_result" && role_ == "user") {
      has_results_ = true;
      messages_.push_back({{"role", "tool"},
                           {"tool_call_id", block.needed_text("tool_use_id")},
                           {"content", block.has("content") ? blocks_text(block, "content") : ""}});
    } else if (type != "thinking" && type != "redacted_thinking") {
      refuse_block(block);  // what the model thought before is not shown to it again
    }
  }

  const std::string role_;
  Json& messages_;
  std::string text_;
  Json calls_ = Json::array();
  bool has_results_ = false;
};

/// Collects texts, and forgets them at each `cache_control`.
class CachePoints {
 public:
  void add(const Json& part) {
    if (part.is_string()) text_ += part.get<std::string>() + "\n";
    if (part.is_array()) {
      for (const Json& each : part) add(each);
    }
    if (!part.is_object()) return;
    if (const auto content = part.find("content"); content != part.end()) {
      add(*content);
    } else if (const auto text = part.find("text"); text != part.end()) {
      add(*text);
    } else {
      text_ += to_text(part);
    }
    if (part.contains("cache_control") && !part["cache_control"].is_null()) point();
  }
  void point() {
    text_.clear();
    found_ = true;
  }
  std::optional<std::string> text() const { return found_ ? std::optional(text_) : std::nullopt; }

 private:
  std::string text_;
  bool found_ = false;
};

}  // namespace

std::string read_system(const Fields& owner, const char* name, std::vector<std::string>& notes) {
  const Json& content = owner.need(name);
  if (content.is_string()) return without_accounting(content.get<std::string>(), notes);
  if (!content.is_array()) return blocks_text(owner, name);
  Json kept = Json::array();
  for (const Json& block : content) {
    kept.push_back(block);
    const bool is_text = block.is_object() && block.contains("text") && block["text"].is_string();
    if (is_text) kept.back()["text"] = without_accounting(block["text"].get<std::string>(), notes);
  }
  const Json with = {{name, kept}};
  return blocks_text(Fields(with), name);
}

void read_message_blocks(const Fields& message, const std::string& role, Json& messages) {
  MessageReader(role, messages).read(message);
}

std::vector<MessageDocument> message_documents(const Json& messages) {
  std::vector<MessageDocument> documents;
  for (const Json& message : messages) {
    const auto content = message.find("content");
    if (content == message.end() || !content->is_array()) continue;
    for (const Json& json : *content) {
      const Fields block(json);
      if (block.needed_text("type") != "document") continue;
      const Fields citations = block.inside("citations");
      documents.push_back({.title = block.text("title"),
                           .text = document_source(block),
                           .is_citable = citations.boolean("enabled").value_or(false)});
    }
  }
  return documents;
}

std::optional<std::string> text_after_cache_control(const Json& body) {
  CachePoints points;
  for (const char* name : {"tools", "system", "messages"}) {
    if (const auto part = body.find(name); part != body.end()) points.add(*part);
  }
  if (body.contains("cache_control") && !body["cache_control"].is_null()) points.point();
  return points.text();
}

}  // namespace snapkv::server
