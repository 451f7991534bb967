// SPDX-License-Identifier: MIT
#include "handles.h"

#include <algorithm>

namespace snapkv_node {

Options options_at(const Napi::CallbackInfo& info, size_t i) {
  const Options options(snapkv_options_new(), snapkv_options_free);
  if (!options) throw new_error(info.Env(), {SNAPKV_ERROR_MEMORY, "out of memory"});
  const auto list = info[i].As<Napi::Array>();
  for (uint32_t k = 0; k + 1 < list.Length(); k += 2) {
    const std::string name = list.Get(k).As<Napi::String>().Utf8Value();
    const std::string value = list.Get(k + 1).As<Napi::String>().Utf8Value();
    try {
      ErrorText::check([&](char* error, size_t size) {
        return snapkv_options_set(options.get(), name.c_str(), value.c_str(), error, size);
      });
    } catch (const Failure& failure) {
      throw new_error(info.Env(), failure, name);
    }
  }
  return options;
}

Job job_at(const Napi::CallbackInfo& info, size_t i) {
  Job job;
  if (!info[i].IsObject()) return job;
  const auto control = info[i].As<Napi::Object>();
  const Napi::Value cancel = control.Get("cancel"), progress = control.Get("onProgress");
  if (cancel.IsExternal()) job.cancel = cancel.As<Napi::External<Handle<Cancel>>>().Data()->object;
  if (progress.IsFunction()) {
    job.progress =
        std::make_shared<Napi::FunctionReference>(Napi::Persistent(progress.As<Napi::Function>()));
  }
  return job;
}

std::string take_text(snapkv_text* text) {
  const std::unique_ptr<snapkv_text, void (*)(snapkv_text*)> owner(text, snapkv_text_free);
  return {text->data, text->n};
}

std::vector<int32_t> take_tokens(snapkv_tokens* tokens) {
  const std::unique_ptr<snapkv_tokens, void (*)(snapkv_tokens*)> owner(tokens, snapkv_tokens_free);
  return {tokens->ids, tokens->ids + tokens->n};
}

Napi::Value to_js(Napi::Env env, const std::vector<int32_t>& ids) {
  auto array = Napi::Int32Array::New(env, ids.size());
  std::copy(ids.begin(), ids.end(), array.Data());
  return array;
}

Napi::Value to_js(Napi::Env env, const std::string& text) { return Napi::String::New(env, text); }

Napi::Value to_js(Napi::Env env, int64_t number) {
  return Napi::Number::New(env, static_cast<double>(number));
}

}  // namespace snapkv_node
