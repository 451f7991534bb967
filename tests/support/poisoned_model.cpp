// SPDX-License-Identifier: MIT
#include "tests/support/poisoned_model.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "format/gguf.h"

namespace snapkv::test {
namespace {

template <typename T>
void store(std::vector<char>& bytes, size_t offset, T value) {
  SNAPKV_CHECK(offset + sizeof(T) <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

}  // namespace

void write_poisoned_model(const std::string& from, const std::string& to, const Poison& poison) {
  const GgufFile file = GgufFile::open(from);
  const GgufTensor* found = file.find_tensor(poison.tensor);
  SNAPKV_CHECK(found != nullptr && found->part == 0);
  const DType dtype = found->tensor.dtype;
  SNAPKV_CHECK(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16);
  const int64_t end = poison.count < 0 ? found->tensor.numel() : poison.first + poison.count;
  SNAPKV_CHECK(poison.first >= 0 && end <= found->tensor.numel());

  std::ifstream in(from, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (int64_t i = poison.first; i < end; ++i) {
    const size_t offset = found->file_offset + static_cast<size_t>(i * block_bytes(dtype));
    if (dtype == DType::f32) store(bytes, offset, poison.value);
    if (dtype == DType::f16) store(bytes, offset, to_f16(poison.value).bits);
    if (dtype == DType::bf16) store(bytes, offset, to_bf16(poison.value).bits);
  }
  std::ofstream out(to, std::ios::binary);
  out.write(bytes.data(), std::ssize(bytes));
  out.close();
  SNAPKV_CHECK(out.good());
}

}  // namespace snapkv::test
