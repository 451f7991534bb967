// SPDX-License-Identifier: MIT
// LentFile: the content of a saved cache's file that is in memory already, such as memory that
// several processes share. SavedSessionFile and KvPrefix read it where it is.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace snapkv {

struct LentFile {
  std::string name;                  ///< for messages
  std::span<const std::byte> bytes;  ///< begin at a multiple of 64, and must not change
  std::shared_ptr<const void> owner = nullptr;  ///< keeps the bytes as long as they are in use
};

}  // namespace snapkv
