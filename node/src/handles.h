// SPDX-License-Identifier: MIT
// What JavaScript holds of the C API: handles, and how arguments and results cross.
#pragma once

#include <napi.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine_thread.h"
#include "errors.h"
#include "snapkv/snapkv.h"

namespace snapkv_node {

/// An object of the C API with the thread that it is used on. Jobs have copies, so that a handle
/// may be let go while they run.
template <typename T>
struct Handle {
  std::shared_ptr<EngineThread> engine;
  std::shared_ptr<T> object;
};

template <typename T>
struct HandleType;  // its name in messages, a tag that tells it from the others, how it is freed
template <>
struct HandleType<snapkv_model> {
  static constexpr const char* kName = "model";
  static constexpr napi_type_tag kTag = {0x736e61706b76, 1};
  static void free(snapkv_model* model) { snapkv_model_free(model); }
};
template <>
struct HandleType<snapkv_prefix> {
  static constexpr const char* kName = "document";
  static constexpr napi_type_tag kTag = {0x736e61706b76, 2};
  static void free(snapkv_prefix* prefix) { snapkv_prefix_free(prefix); }
};
template <>
struct HandleType<snapkv_session> {
  static constexpr const char* kName = "session";
  static constexpr napi_type_tag kTag = {0x736e61706b76, 3};
  static void free(snapkv_session* session) { snapkv_session_free(session); }
};
template <>
struct HandleType<snapkv_generator> {
  static constexpr const char* kName = "answer";
  static constexpr napi_type_tag kTag = {0x736e61706b76, 4};
  static void free(snapkv_generator* generator) { snapkv_generator_free(generator); }
};
template <>
struct HandleType<Cancel> {
  static constexpr const char* kName = "cancel";
  static constexpr napi_type_tag kTag = {0x736e61706b76, 5};
};

template <typename T>
std::shared_ptr<T> owned(T* object) {
  return std::shared_ptr<T>(object, HandleType<T>::free);
}

template <typename T>
Napi::Value to_js(Napi::Env env, Handle<T> handle) {
  auto external = Napi::External<Handle<T>>::New(env, new Handle<T>(std::move(handle)),
                                                 [](Napi::Env, Handle<T>* data) { delete data; });
  external.TypeTag(&HandleType<T>::kTag);
  return external;
}

/// The handle of argument i itself; throws if it is none of this kind.
template <typename T>
Handle<T>& handle_at(const Napi::CallbackInfo& info, size_t i) {
  const Napi::Value value = info[i];
  if (!value.IsExternal() || !value.As<Napi::Object>().CheckTypeTag(&HandleType<T>::kTag)) {
    const std::string message = std::string("this is no ") + HandleType<T>::kName;
    throw new_error(info.Env(), {SNAPKV_ERROR_USAGE, message});
  }
  return *value.As<Napi::External<Handle<T>>>().Data();
}

/// A copy of the handle of argument i; throws if it has been freed.
template <typename T>
Handle<T> object_at(const Napi::CallbackInfo& info, size_t i) {
  Handle<T> handle = handle_at<T>(info, i);
  if (!handle.object) {
    const std::string name = HandleType<T>::kName;
    throw new_error(info.Env(), {SNAPKV_ERROR_USAGE, "the " + name + " has been freed"}, name);
  }
  return handle;
}

inline std::string string_at(const Napi::CallbackInfo& info, size_t i) {
  return info[i].As<Napi::String>().Utf8Value();
}

/// The ids of argument i, an Int32Array.
inline std::vector<int32_t> ids_at(const Napi::CallbackInfo& info, size_t i) {
  const auto array = info[i].As<Napi::Int32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

using Options = std::shared_ptr<snapkv_options>;
/// Options of argument i, an array of [name, value, name, value, ...]. Throws an error whose field
/// is the name of the one that is refused.
Options options_at(const Napi::CallbackInfo& info, size_t i);

/// A job with what argument i, {cancel, onProgress}, says of it.
Job job_at(const Napi::CallbackInfo& info, size_t i);

/// Takes over and frees the result of a call of the C API.
std::string take_text(snapkv_text* text);
std::vector<int32_t> take_tokens(snapkv_tokens* tokens);

Napi::Value to_js(Napi::Env env, const std::vector<int32_t>& ids);  // an Int32Array
Napi::Value to_js(Napi::Env env, const std::string& text);  // with U+FFFD for what is not UTF-8
Napi::Value to_js(Napi::Env env, int64_t number);

/// Submits `compute`, whose value becomes the promise's; for values that to_js() takes.
template <typename F>
Napi::Value submit(const Napi::CallbackInfo& info, const std::shared_ptr<EngineThread>& engine,
                   Job job, F compute) {
  using Value = decltype(compute(job));
  const auto value = std::make_shared<Value>();
  job.work = [value, compute = std::move(compute)](Job& self) { *value = compute(self); };
  job.result = [value](Napi::Env env) { return to_js(env, *value); };
  return engine->submit(info.Env(), std::move(job));
}

// The functions of the addon, by file.
void add_model_functions(Napi::Env env, Napi::Object exports);
void add_session_functions(Napi::Env env, Napi::Object exports);

}  // namespace snapkv_node
