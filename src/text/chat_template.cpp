// SPDX-License-Identifier: MIT
// ChatTemplate (include/snapkv/chat.h).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "snapkv/chat.h"
#include "text/builtin_templates.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json.h"
#include "text/jinja/parser.h"

namespace snapkv {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20;  // the largest known templates have about 20 KB

// The work that a rendering may do, in units of jinja::Budget: this many, which take 20 to 80 ms
// depending on the processor, plus one per byte of conversation, so that a template can copy a long
// conversation sixteen times.
constexpr int64_t kWork = 600'000;

}  // namespace

struct ChatTemplate::Tree {
  jinja::Block block;
};

ChatTemplate::ChatTemplate(std::string source, std::string name, std::shared_ptr<const Tree> tree)
    : source_(std::move(source)), name_(std::move(name)), tree_(std::move(tree)) {}

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name) {
  if (source.size() > kMaxTemplateBytes) {
    fail(ErrorCode::kUsage, "{}: a chat template of {} bytes; {} are the most that is read", name,
         source.size(), kMaxTemplateBytes);
  }
  if (const size_t at = utf8::valid_prefix(source); at < source.size()) {
    fail(ErrorCode::kUsage, "{}: not UTF-8 from byte {} on", name, at);
  }
  try {
    auto tree = std::make_shared<Tree>();
    tree->block = jinja::parse(source);
    return {std::string(source), std::move(name), std::move(tree)};
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", name, e.what());
  }
}

ChatTemplate ChatTemplate::built_in(std::string_view name) {
  const std::optional<std::string_view> source = find_builtin_template(name);
  if (!source) {
    fail(ErrorCode::kUsage, "there is no chat template '{}'; built in are: {}", name,
         fmt::join(built_in_names(), ", "));
  }
  return parse(*source, std::string(name));
}

std::vector<std::string> ChatTemplate::built_in_names() { return builtin_template_names(); }

RenderedChat ChatTemplate::render(std::string_view variables,
                                  std::optional<std::time_t> now) const {
  if (tree_ == nullptr) fail(ErrorCode::kUsage, "the chat template was moved from");
  const int64_t work = kWork + static_cast<int64_t>(variables.size());
  try {
    jinja::Budget reading(work);
    jinja::DictPtr values = jinja::read_variables(reading, variables);
    jinja::Interpreter interpreter(work, now.value_or(std::time(nullptr)));
    return interpreter.run(tree_->block, std::move(values));
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", name_, e.what());
  }
}

}  // namespace snapkv
