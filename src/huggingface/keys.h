// SPDX-License-Identifier: MIT
// Keys: the metadata with which a model is presented as GGUF; each value has the type that
// llama.cpp's own converter gives it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/gguf.h"

namespace snapkv::huggingface {

class Keys {
 public:
  void u32(std::string key, uint32_t value) {
    set(std::move(key), {GgufType::u32, GgufType::u32, uint64_t{value}});
  }
  void f32(std::string key, double value) {
    set(std::move(key), {GgufType::f32, GgufType::u32, double{static_cast<float>(value)}});
  }
  void flag(std::string key, bool value) {
    set(std::move(key), {GgufType::boolean, GgufType::u32, value});
  }
  void text(std::string key, std::string value) {
    set(std::move(key), {GgufType::string, GgufType::u32, std::move(value)});
  }
  void texts(std::string key, std::vector<std::string> values) {
    set(std::move(key), {GgufType::array, GgufType::string, std::move(values)});
  }
  void flags(std::string key, std::vector<bool> values) {
    set(std::move(key), {GgufType::array, GgufType::boolean, std::move(values)});
  }
  void i32s(std::string key, std::vector<int64_t> values) {
    set(std::move(key), {GgufType::array, GgufType::i32, std::move(values)});
  }
  /// The values must be those of an f32.
  void f32s(std::string key, std::vector<double> values) {
    set(std::move(key), {GgufType::array, GgufType::f32, std::move(values)});
  }
  std::map<std::string, GgufValue, std::less<>> take() { return std::move(map_); }

 private:
  void set(std::string key, GgufValue value) { map_[std::move(key)] = std::move(value); }
  std::map<std::string, GgufValue, std::less<>> map_;
};

}  // namespace snapkv::huggingface
