// SPDX-License-Identifier: MIT
// snapkv.h: options, models and documents.
#include <utility>

#include "bindings/c_api_engine.h"
#include "snapkv/chat.h"

namespace snapkv {
namespace {

const Model& model_of(const snapkv_model* model) { return *given(model, "model").model; }

/// The conversation as the model's own template writes it.
RenderedChat render(const Model& model, std::string_view variables) {
  OrderedJson json = OrderedJson::parse(variables, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) fail(ErrorCode::kUsage, "variables: it must be a JSON object");
  if (!json.contains("messages") || !json["messages"].is_array() || json["messages"].empty()) {
    fail(ErrorCode::kUsage, "messages: it must be a list of at least one message");
  }
  const ModelChat chat = model.chat();
  const auto found = chat.templates.find("default");
  if (found == chat.templates.end()) {
    fail(ErrorCode::kUsage, "{}: the model has no chat template: it continues texts",
         model.info().path);
  }
  const auto add = [&json](const char* name, OrderedJson value) {
    if (!json.contains(name)) json[name] = std::move(value);
  };
  add("add_generation_prompt", true);
  add("bos_token", chat.bos_token);
  add("eos_token", chat.eos_token);
  return ChatTemplate::parse(found->second, "chat template").render(json.dump());
}

OrderedJson info_json(const Model& model) {
  const ModelInfo& m = model.info();
  OrderedJson templates = OrderedJson::array();
  for (const auto& [name, source] : model.chat().templates) templates.push_back(name);
  return {{"path", m.path},
          {"architecture", m.architecture},
          {"name", m.name},
          {"file_type", m.file_type},
          {"tokenizer", m.tokenizer},
          {"n_layer", m.n_layer},
          {"n_embd", m.n_embd},
          {"n_ff", m.n_ff},
          {"n_vocab", m.n_vocab},
          {"n_ctx_train", m.n_ctx_train},
          {"n_head", m.n_head},
          {"n_head_kv", m.n_head_kv},
          {"head_dim", m.head_dim},
          {"n_params", m.n_params},
          {"weight_bytes", m.weight_bytes},
          {"backend", model.backend_description()},
          {"chat_templates", std::move(templates)}};
}

std::shared_ptr<const KvPrefix> read_prefix(const std::shared_ptr<const Model>& model,
                                            const EngineOptions& options,
                                            std::span<const int32_t> ids, ProgressFn progress) {
  SessionOptions session_options = options.session;
  // the rows that count are the prefix's; what the session keeps beside them is of no use
  session_options.kv = {.name = "streaming-llm", .budget = 64};
  session_options.kv_memory = 0;
  session_options.kv_decode_limit = 0;
  Session session(model, session_options);
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens.assign(ids.begin(), ids.end());
  prompt.options.progress = std::move(progress);
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  return prefill.take_prefix();
}

}  // namespace
}  // namespace snapkv

using namespace snapkv;  // NOLINT: the functions below are C's

void snapkv_text_free(snapkv_text* text) {
  if (text != nullptr) std::free(text->data);
  delete text;
}

void snapkv_tokens_free(snapkv_tokens* tokens) {
  if (tokens != nullptr) std::free(tokens->ids);
  delete tokens;
}

const char* snapkv_version(void) { return version(); }

int snapkv_error_code(void) { return last_error_code; }

// ---------------------------------------------------------------- options

snapkv_options* snapkv_options_new(void) {
  return guarded_pointer(nullptr, 0, [] { return new snapkv_options(); });
}

void snapkv_options_free(snapkv_options* options) { delete options; }

int snapkv_options_set(snapkv_options* options, const char* name, const char* value, char* error,
                       size_t error_size) {
  return guarded(error, error_size, [&] {
    set_option(given(options, "options").options, text_of(name, "name"), text_of(value, "value"));
  });
}

snapkv_text* snapkv_options_get(const snapkv_options* options, const char* name, char* error,
                                size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(option_text(given(options, "options").options, text_of(name, "name")));
  });
}

snapkv_text* snapkv_options_list(const char* policy, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(list_options_json(policy != nullptr ? policy : kDefaultPolicy));
  });
}

// ---------------------------------------------------------------- models

snapkv_model* snapkv_model_load(const snapkv_options* options, snapkv_progress_fn progress,
                                void* user, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    ModelOptions model = given(options, "options").options.model;
    model.progress = progress_of(progress, user);
    return new snapkv_model{Model::load(model)};
  });
}

void snapkv_model_free(snapkv_model* model) { delete model; }

snapkv_text* snapkv_model_info(const snapkv_model* model, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] { return new_json(info_json(model_of(model))); });
}

snapkv_tokens* snapkv_tokenize(const snapkv_model* model, const char* text, size_t n_text,
                               int add_special, int parse_special, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    if (n_text > 0) given(text, "text");
    return new_tokens(model_of(model).tokenize(std::string_view(text, n_text), add_special != 0,
                                               parse_special != 0));
  });
}

snapkv_text* snapkv_detokenize(const snapkv_model* model, const int32_t* ids, size_t n, char* error,
                               size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(std::string_view(model_of(model).detokenize(tokens_of(ids, n))));
  });
}

snapkv_text* snapkv_chat_text(const snapkv_model* model, const char* variables, char* error,
                              size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(
        std::string_view(render(model_of(model), text_of(variables, "variables")).text));
  });
}

snapkv_tokens* snapkv_chat_tokens(const snapkv_model* model, const char* variables, char* error,
                                  size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    const Model& m = model_of(model);
    return new_tokens(m.tokenize(render(m, text_of(variables, "variables"))));
  });
}

int snapkv_is_end_of_generation(const snapkv_model* model, int32_t id) {
  return model != nullptr && model->model->is_end_of_generation(id) ? 1 : 0;
}

// ---------------------------------------------------------------- documents

snapkv_prefix* snapkv_prefix_read(const snapkv_model* model, const snapkv_options* options,
                                  const int32_t* ids, size_t n, snapkv_progress_fn progress,
                                  void* user, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    const std::shared_ptr<const Model>& m = given(model, "model").model;
    return new snapkv_prefix{m, read_prefix(m, given(options, "options").options, tokens_of(ids, n),
                                            progress_of(progress, user))};
  });
}

snapkv_prefix* snapkv_prefix_load(const snapkv_model* model, const char* path, char* error,
                                  size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    const std::shared_ptr<const Model>& m = given(model, "model").model;
    return new snapkv_prefix{m, KvPrefix::load(m, std::string(text_of(path, "path")))};
  });
}

int snapkv_prefix_save(const snapkv_prefix* prefix, const char* path, char* error,
                       size_t error_size) {
  return guarded(error, error_size, [&] {
    const snapkv_prefix& rows = given(prefix, "prefix");
    rows.prefix->save(std::string(text_of(path, "path")), stored_kv_type(rows.model->info()));
  });
}

size_t snapkv_prefix_tokens(const snapkv_prefix* prefix) {
  return prefix != nullptr ? prefix->prefix->tokens().size() : 0;
}

void snapkv_prefix_free(snapkv_prefix* prefix) { delete prefix; }
