// SPDX-License-Identifier: MIT
#include "text/jinja/text.h"

#include <algorithm>
#include <utility>

namespace snapkv::jinja {
namespace {

int64_t count_chars(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace

Text::Text(std::string bytes, std::vector<ByteRange> input, bool markup)
    : bytes_(std::move(bytes)),
      input_(std::move(input)),
      size_(count_chars(bytes_)),
      markup_(markup) {}

bool Text::has_input(size_t begin, size_t end) const {
  const auto first = std::partition_point(input_.begin(), input_.end(),
                                          [&](const ByteRange& r) { return r.end <= begin; });
  return first != input_.end() && first->begin < end;
}

size_t Text::offset(int64_t index) const {
  if (size_ == static_cast<int64_t>(bytes_.size())) return static_cast<size_t>(index);
  size_t at = 0;
  for (; index > 0; --index) at += char_bytes(bytes_[at]);
  return at;
}

TextPtr make_text(std::string bytes) { return std::make_shared<const Text>(std::move(bytes)); }

void TextBuilder::mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!input_.empty() && input_.back().end == begin) {
    input_.back().end = end;
  } else {
    input_.push_back({begin, end});
  }
}

void TextBuilder::append(const Text& text, size_t begin, size_t end) {
  const size_t shift = bytes_.size();
  append_as(std::string_view(text.bytes()).substr(begin, end - begin), false);
  const std::vector<ByteRange>& marks = text.input();
  auto at = std::partition_point(marks.begin(), marks.end(),
                                 [&](const ByteRange& r) { return r.end <= begin; });
  for (; at != marks.end() && at->begin < end; ++at) {
    budget_->charge(1);
    mark(std::max(at->begin, begin) - begin + shift, std::min(at->end, end) - begin + shift);
  }
}

void TextBuilder::append_as(std::string_view bytes, bool input) {
  budget_->charge_bytes(bytes.size());
  bytes_ += bytes;
  if (input) mark(bytes_.size() - bytes.size(), bytes_.size());
}

void TextBuilder::append_char(int32_t codepoint, bool input) {
  std::string bytes;
  utf8::append(bytes, static_cast<uint32_t>(codepoint));
  append_as(bytes, input);
}

TextPtr TextBuilder::finish(bool markup) {
  return std::make_shared<const Text>(std::exchange(bytes_, {}), std::exchange(input_, {}), markup);
}

RenderedChat TextBuilder::finish_chat() {
  return {std::exchange(bytes_, {}), std::exchange(input_, {})};
}

TextPtr substring(Budget& budget, const Text& text, size_t begin, size_t end) {
  TextBuilder builder(budget);
  builder.append(text, begin, end);
  return builder.finish(text.markup());
}

TextPtr with_markup(const TextPtr& text, bool markup) {
  if (text->markup() == markup) return text;
  return std::make_shared<const Text>(text->bytes(), text->input(), markup);
}

}  // namespace snapkv::jinja
