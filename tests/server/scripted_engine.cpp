// SPDX-License-Identifier: MIT
#include "tests/server/scripted_engine.h"

#include <fmt/core.h>

#include "server/scheduler/request_plan.h"
#include "tests/support/test_models.h"

namespace snapkv::test {

using namespace server;

const char* const kHermesTemplate =
    "{% if tools %}<|im_start|>system\n<tools>{% for tool in tools %}{{ tool | tojson }}\n"
    "{% endfor %}</tools>\nCall with <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>"
    "<|im_end|>\n{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}{% for call in message.tool_calls or [] %}<tool_call>\n{\"name\": "
    "\"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n"
    "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

ScriptedEngine::ScriptedEngine() : model_(load_model("needle")) {
  options_.n_parallel = 8;
  script_ = [](const Request& request, RequestUpdates& updates) {
    push_answer(updates, std::vector<std::string>(static_cast<size_t>(request.n), "Hello"));
  };
}

std::vector<Request> ScriptedEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::vector<std::shared_ptr<RequestUpdates>> ScriptedEngine::generations() const {
  const std::lock_guard lock(mutex_);
  return generations_;
}

std::shared_ptr<RequestUpdates> ScriptedEngine::submit(Request request) {
  if (draining_) throw Refused(Refused::Kind::draining, "the server is about to end");
  auto updates = std::make_shared<RequestUpdates>();
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    generations_.push_back(updates);
  }
  script_(request, *updates);
  return updates;
}

PromptFit ScriptedEngine::fit(Request request) const {
  return fit_prompt(*model_, request, fit_limit_);
}

std::shared_ptr<RequestUpdates> ScriptedEngine::make_snapshot(Request request,
                                                              const std::string& path,
                                                              const std::string& notes) {
  calls_.push_back("snapshot " + path + " " + notes);
  return submit(std::move(request));
}

void ScriptedEngine::save_slot(int64_t id, const std::string& path) {
  calls_.push_back(fmt::format("save {} {}", id, path));
}

int64_t ScriptedEngine::restore_slot(const std::string& path) {
  calls_.push_back("restore " + path);
  return slots_.front().id;
}

void ScriptedEngine::erase_slot(int64_t id) { calls_.push_back(fmt::format("erase {}", id)); }

void push_answer(RequestUpdates& updates, const std::vector<std::string>& texts, size_t n,
                 FinishReason reason) {
  PromptRead read;
  read.n_tokens = 10;
  read.n_reused = 4;
  read.seconds = 0.5;
  read.kv = {"snapkv", 10, 8, 1000, 800, 0.25, 4, {}};
  updates.push(read);
  for (size_t choice = 0; choice < texts.size(); ++choice) {
    for (size_t at = 0; at < texts[choice].size(); at += n) {
      updates.push(AnswerPart{choice, texts[choice].substr(at, n), {}});
    }
    updates.push(AnswerEnd{choice, reason, "", 3, 1.5});
  }
}

ApiOptions api_options() {
  ApiOptions options;
  options.model_name = "needle";
  options.created = 1700000000;
  options.policy = [](const std::string& name) {
    PolicyConfig config;
    config.name = name;
    validate(config);
    return config;
  };
  options.chat_template = ChatTemplate::built_in("chatml");
  options.tool_template = ChatTemplate::parse(kHermesTemplate, "hermes");
  return options;
}

}  // namespace snapkv::test
