// SPDX-License-Identifier: MIT
// The addon: the C API (snapkv/snapkv.h) for lib/, whose classes are what users see.
#include "handles.h"

namespace snapkv_node {
namespace {

/// setErrorFactory((message, code, field) => Error): makes the errors of all other functions.
void set_error_factory(const Napi::CallbackInfo& info) {
  info.Env().GetInstanceData<AddonData>()->make_error =
      Napi::Persistent(info[0].As<Napi::Function>());
}

/// endThreads(): ends the threads of all models, and what they compute.
void end_threads(const Napi::CallbackInfo& info) {
  for (const auto& engine : info.Env().GetInstanceData<AddonData>()->engines) {
    if (const auto alive = engine.lock()) alive->stop();
  }
}

/// listOptions(policy or null): JSON.
Napi::Value list_options(const Napi::CallbackInfo& info) {
  const bool has_policy = info[0].IsString();
  const std::string policy = has_policy ? string_at(info, 0) : "";
  try {
    return to_js(info.Env(), take_text(ErrorText::pointer([&](char* error, size_t size) {
                   return snapkv_options_list(has_policy ? policy.c_str() : nullptr, error, size);
                 })));
  } catch (const Failure& failure) {
    throw new_error(info.Env(), failure, "policy");
  }
}

/// newCancel(): what a call is given to be ended by.
Napi::Value new_cancel(const Napi::CallbackInfo& info) {
  return to_js(info.Env(), Handle<Cancel>{nullptr, std::make_shared<Cancel>()});
}

/// cancel(token): ends its call, or drops it if it has not begun.
void cancel(const Napi::CallbackInfo& info) {
  const auto token = object_at<Cancel>(info, 0).object;
  token->requested = true;
  if (const auto engine = token->engine.lock()) engine->drop_cancelled(info.Env());
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new AddonData);
  exports.Set("version", snapkv_version());
  exports.Set("setErrorFactory", Napi::Function::New(env, set_error_factory));
  exports.Set("endThreads", Napi::Function::New(env, end_threads));
  exports.Set("listOptions", Napi::Function::New(env, list_options));
  exports.Set("newCancel", Napi::Function::New(env, new_cancel));
  exports.Set("cancel", Napi::Function::New(env, cancel));
  add_model_functions(env, exports);
  add_session_functions(env, exports);
  return exports;
}

}  // namespace
}  // namespace snapkv_node

Napi::Object snapkv_node_init(Napi::Env env, Napi::Object exports) {
  return snapkv_node::init(env, exports);
}
NODE_API_MODULE(snapkv, snapkv_node_init)
