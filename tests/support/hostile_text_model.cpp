// SPDX-License-Identifier: MIT
#include "tests/support/hostile_text_model.h"

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "format/gguf.h"
#include "tests/support/gguf_writer.h"

namespace snapkv::test {
namespace {

/// Reads a GGUF header from its beginning.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes), size_(bytes.size()) {}
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number<uint64_t>()); }
  std::string_view take(size_t n) {
    SNAPKV_CHECK(n <= rest_.size());
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  size_t position() const { return size_ - rest_.size(); }

 private:
  std::string_view rest_;
  size_t size_;
};

/// Skips a value of that type.
void skip(Reader& in, uint32_t type) {
  static constexpr std::array<size_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (type == static_cast<uint32_t>(GgufType::string)) {
    in.text();
  } else if (type == static_cast<uint32_t>(GgufType::array)) {
    const auto of = in.number<uint32_t>();
    const auto n = in.number<uint64_t>();
    for (uint64_t i = 0; i < n; ++i) skip(in, of);
  } else {
    in.take(kSizes.at(type));
  }
}

std::string_view as_text(const ByteWriter& w) {
  return {reinterpret_cast<const char*>(w.bytes().data()), w.bytes().size()};
}

class Header {
 public:
  void add(std::string_view key, std::string_view type_and_value) {
    ByteWriter w;
    w.put_string(key);
    bytes_ += as_text(w);
    bytes_ += type_and_value;
    ++n_;
  }
  void add_text(std::string_view key, std::string_view value) {
    ByteWriter w;
    w.put(static_cast<uint32_t>(GgufType::string)).put_string(value);
    add(key, as_text(w));
  }
  const std::string& bytes() const { return bytes_; }
  uint64_t size() const { return n_; }

 private:
  std::string bytes_;
  uint64_t n_ = 0;
};

/// Returns the vocabulary with hostile text appended to every ordinary piece, but not to control
/// tokens in <...> or to bytes.
std::string hostile_pieces(std::string_view type_and_value) {
  Reader in(type_and_value);
  ByteWriter w;
  w.put(in.number<uint32_t>()).put(in.number<uint32_t>());
  const auto n = in.number<uint64_t>();
  w.put(n);
  for (uint64_t i = 0; i < n; ++i) {
    std::string piece(in.text());
    if (!piece.starts_with('<')) piece += kHostileText;
    if (i + 1 == n) piece += std::string(1 << 20, 'x');
    w.put_string(piece);
  }
  return std::string(as_text(w));
}

/// Copies the file `from` to `to`; edit(header, key, type and value) writes each key's new
/// metadata, and finish(header) adds more.
template <typename Edit, typename Finish>
void rewrite_metadata(const std::string& from, const std::string& to, const Edit& edit,
                      const Finish& finish) {
  std::ifstream file(from, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Reader in(bytes);
  in.take(8);  // magic, version
  const auto n_tensors = in.number<uint64_t>();
  const auto n_keys = in.number<uint64_t>();
  Header header;
  for (uint64_t i = 0; i < n_keys; ++i) {
    const std::string_view key = in.text();
    const size_t begin = in.position();
    skip(in, in.number<uint32_t>());
    edit(header, key, std::string_view(bytes).substr(begin, in.position() - begin));
  }
  finish(header);
  const size_t tensors = in.position();
  for (uint64_t i = 0; i < n_tensors; ++i) {
    in.text();
    in.take(in.number<uint32_t>() * sizeof(uint64_t) + sizeof(uint32_t) + sizeof(uint64_t));
  }
  constexpr size_t kAlignment = 32;
  const auto padded = [](size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; };
  ByteWriter counts;
  counts.put(n_tensors).put(header.size());
  std::string out = bytes.substr(0, 8) + std::string(as_text(counts)) + header.bytes() +
                    bytes.substr(tensors, in.position() - tensors);
  out.resize(padded(out.size()));
  out += bytes.substr(padded(in.position()));  // the tensors' offsets count from here
  std::ofstream written(to, std::ios::binary);
  written << out;
  written.close();
  SNAPKV_CHECK(written.good());
}

}  // namespace

void write_hostile_text_model(const std::string& from, const std::string& to) {
  const std::string hostile(kHostileText), megabyte(1 << 20, 'x');
  const auto edit = [](Header& header, std::string_view key, std::string_view value) {
    if (key == "general.name" || key == "tokenizer.chat_template") return;
    header.add(key, key == "tokenizer.ggml.tokens" ? hostile_pieces(value) : std::string(value));
  };
  rewrite_metadata(from, to, edit, [&](Header& header) {
    header.add_text("general.name", "a name" + hostile + megabyte);
    header.add_text("general.description", hostile + megabyte);
    header.add_text("hostile." + hostile, hostile);
    header.add_text("tokenizer.chat_template",
                    hostile + "{% for m in messages %}{{ m.content }}{% endfor %}");
  });
}

void write_model_with_keys(const std::string& from, const std::string& to,
                           const std::vector<std::pair<std::string, int32_t>>& keys) {
  const auto keep = [](Header& header, std::string_view key, std::string_view value) {
    header.add(key, value);
  };
  rewrite_metadata(from, to, keep, [&](Header& header) {
    for (const auto& [key, number] : keys) {
      ByteWriter value;
      value.put(static_cast<uint32_t>(GgufType::i32)).put(number);
      header.add(key, as_text(value));
    }
  });
}

void write_model_of_many_keys(const std::string& from, const std::string& to, int n_more) {
  std::vector<std::pair<std::string, int32_t>> keys;
  for (int32_t i = 0; i < n_more; ++i) keys.emplace_back("more." + std::to_string(i), i);
  write_model_with_keys(from, to, keys);
}

}  // namespace snapkv::test
