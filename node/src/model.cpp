// SPDX-License-Identifier: MIT
// The addon's functions of models, tokens, chat templates and documents.
#include "handles.h"

namespace snapkv_node {
namespace {

/// loadModel(options, control): a promise of a model.
Napi::Value load_model(const Napi::CallbackInfo& info) {
  const Options options = options_at(info, 0);
  const auto engine = EngineThread::start(info.Env());
  return submit(info, engine, job_at(info, 1), [options, engine](Job& job) {
    return Handle<snapkv_model>{engine, owned(ErrorText::pointer([&](char* error, size_t size) {
                                  return snapkv_model_load(options.get(), EngineThread::on_progress,
                                                           &job, error, size);
                                }))};
  });
}

/// modelInfo(model): JSON.
Napi::Value model_info(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  try {
    return to_js(info.Env(), take_text(ErrorText::pointer([&](char* error, size_t size) {
                   return snapkv_model_info(model.object.get(), error, size);
                 })));
  } catch (const Failure& failure) {
    throw new_error(info.Env(), failure);
  }
}

/// tokenize(model, text, addSpecial, parseSpecial, control): a promise of ids.
Napi::Value tokenize(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  Job job = job_at(info, 4);
  job.is_brief = true;
  return submit(info, model.engine, std::move(job),
                [model, text = string_at(info, 1), add = info[2].ToBoolean().Value(),
                 parse = info[3].ToBoolean().Value()](Job&) {
                  return take_tokens(ErrorText::pointer([&](char* error, size_t size) {
                    return snapkv_tokenize(model.object.get(), text.data(), text.size(), add, parse,
                                           error, size);
                  }));
                });
}

/// detokenize(model, ids): a promise of text.
Napi::Value detokenize(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  return submit(info, model.engine, {.is_brief = true}, [model, ids = ids_at(info, 1)](Job&) {
    return take_text(ErrorText::pointer([&](char* error, size_t size) {
      return snapkv_detokenize(model.object.get(), ids.data(), ids.size(), error, size);
    }));
  });
}

/// chatText(model, variables): a promise of text.
Napi::Value chat_text(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  return submit(info, model.engine, {.is_brief = true},
                [model, variables = string_at(info, 1)](Job&) {
                  return take_text(ErrorText::pointer([&](char* error, size_t size) {
                    return snapkv_chat_text(model.object.get(), variables.c_str(), error, size);
                  }));
                });
}

/// chatTokens(model, variables): a promise of ids.
Napi::Value chat_tokens(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  return submit(info, model.engine, {.is_brief = true},
                [model, variables = string_at(info, 1)](Job&) {
                  return take_tokens(ErrorText::pointer([&](char* error, size_t size) {
                    return snapkv_chat_tokens(model.object.get(), variables.c_str(), error, size);
                  }));
                });
}

/// isEndOfGeneration(model, id)
Napi::Value is_end_of_generation(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  const int32_t id = info[1].ToNumber().Int32Value();
  return Napi::Boolean::New(info.Env(), snapkv_is_end_of_generation(model.object.get(), id) != 0);
}

// ---------------------------------------------------------------- documents

/// readDocument(model, options, ids, control): a promise of a document.
Napi::Value read_document(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  return submit(info, model.engine, job_at(info, 3),
                [model, options = options_at(info, 1), ids = ids_at(info, 2)](Job& job) {
                  return Handle<snapkv_prefix>{
                      model.engine, owned(ErrorText::pointer([&](char* error, size_t size) {
                        return snapkv_prefix_read(model.object.get(), options.get(), ids.data(),
                                                  ids.size(), EngineThread::on_progress, &job,
                                                  error, size);
                      }))};
                });
}

/// loadDocument(model, path): a promise of a document.
Napi::Value load_document(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  return submit(info, model.engine, {}, [model, path = string_at(info, 1)](Job&) {
    return Handle<snapkv_prefix>{
        model.engine, owned(ErrorText::pointer([&](char* error, size_t size) {
          return snapkv_prefix_load(model.object.get(), path.c_str(), error, size);
        }))};
  });
}

/// saveDocument(document, path): a promise of its number of tokens.
Napi::Value save_document(const Napi::CallbackInfo& info) {
  const auto document = object_at<snapkv_prefix>(info, 0);
  return submit(
      info, document.engine, {},
      [document, path = string_at(info, 1)](Job&) {
        ErrorText::check([&](char* error, size_t size) {
          return snapkv_prefix_save(document.object.get(), path.c_str(), error, size);
        });
        return static_cast<int64_t>(snapkv_prefix_tokens(document.object.get()));
      });
}

/// documentTokens(document): how many.
Napi::Value document_tokens(const Napi::CallbackInfo& info) {
  const auto document = object_at<snapkv_prefix>(info, 0);
  return to_js(info.Env(), static_cast<int64_t>(snapkv_prefix_tokens(document.object.get())));
}

template <typename T>
Napi::Value let_go(const Napi::CallbackInfo& info) {
  handle_at<T>(info, 0) = {};
  return info.Env().Undefined();
}

}  // namespace

void add_model_functions(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("loadModel", load_model);
  add("modelInfo", model_info);
  add("tokenize", tokenize);
  add("detokenize", detokenize);
  add("chatText", chat_text);
  add("chatTokens", chat_tokens);
  add("isEndOfGeneration", is_end_of_generation);
  add("readDocument", read_document);
  add("loadDocument", load_document);
  add("saveDocument", save_document);
  add("documentTokens", document_tokens);
  add("freeModel", let_go<snapkv_model>);
  add("freeDocument", let_go<snapkv_prefix>);
  add("freeSession", let_go<snapkv_session>);
  add("freeAnswer", let_go<snapkv_generator>);
}

}  // namespace snapkv_node
