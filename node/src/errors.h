// SPDX-License-Identifier: MIT
// Failures of the C API as exceptions of the engine's thread and errors of JavaScript.
#pragma once

#include <napi.h>

#include <memory>
#include <string>
#include <vector>

#include "engine_thread.h"
#include "snapkv/snapkv.h"

namespace snapkv_node {

/// What an instance of the addon (one for each thread of JavaScript) has.
struct AddonData {
  Napi::FunctionReference make_error;  // (message, code, field) => SnapkvError
  std::vector<std::weak_ptr<EngineThread>> engines;
};

/// An error with code and, if not empty, the option or argument at fault.
inline Napi::Error new_error(Napi::Env env, const Failure& failure, const std::string& field = {}) {
  const AddonData* data = env.GetInstanceData<AddonData>();
  const Napi::Value error = data->make_error.Call(
      {Napi::String::New(env, failure.message), Napi::Number::New(env, failure.code),
       field.empty() ? env.Undefined() : Napi::String::New(env, field)});
  return Napi::Error(env, error);
}

/// Takes the error of a call of the C API: `call(error, error_size)`.
class ErrorText {
 public:
  /// For functions that return a code.
  template <typename F>
  static void check(F&& call) {
    ErrorText e;
    if (const int code = call(e.text_, sizeof(e.text_)); code != SNAPKV_OK) {
      throw Failure{code, e.text_};
    }
  }
  /// For functions that return a pointer; never null.
  template <typename F>
  static auto pointer(F&& call) {
    ErrorText e;
    auto* result = call(e.text_, sizeof(e.text_));
    if (result == nullptr) throw Failure{snapkv_error_code(), e.text_};
    return result;
  }

 private:
  char text_[4096] = "";
};

}  // namespace snapkv_node
