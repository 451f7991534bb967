// SPDX-License-Identifier: MIT
#include "cache/recurrent_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace snapkv {
namespace {

/// In files: number of values, number of marks, their tokens; then zeros up to a multiple of
/// Buffer::kAlignment, and the values of each mark.
size_t marks_head_bytes(size_t n_marks) {
  const size_t bytes = (2 + n_marks) * sizeof(int64_t);
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

int64_t number_at(const SavedState& saved, size_t i) {
  int64_t n = 0;
  std::memcpy(&n, saved.bytes.data() + i * sizeof(n), sizeof(n));
  return n;
}

/// The tokens of a saved state's marks, after comparing sizes and order with what they must be.
std::vector<int64_t> read_marks(const SavedState& saved, int64_t n_values) {
  const size_t n_bytes = saved.bytes.size();
  if (n_bytes < marks_head_bytes(0)) {
    fail(ErrorCode::kBadModel, "{} has {} bytes, at least {} are needed", saved.name, n_bytes,
         marks_head_bytes(0));
  }
  const int64_t n_marks = number_at(saved, 1);
  if (number_at(saved, 0) != n_values || n_marks < 0 ||
      n_marks > RecurrentState::most_marks(saved.n_tokens)) {
    fail(ErrorCode::kBadModel, "{}: its sizes are not those of the model that it names",
         saved.name);
  }
  const size_t all = marks_head_bytes(n_marks) + n_marks * n_values * sizeof(float);
  if (n_bytes != all) {
    fail(ErrorCode::kBadModel, "{} has {} bytes, expected {}", saved.name, n_bytes, all);
  }
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < n_marks; ++i) {
    const int64_t n = number_at(saved, 2 + i);
    if (n <= (tokens.empty() ? 0 : tokens.back()) || n > saved.n_tokens) {
      fail(ErrorCode::kBadModel, "{}: state {} is that after {} tokens of {}", saved.name, i, n,
           saved.n_tokens);
    }
    tokens.push_back(n);
  }
  return tokens;
}

}  // namespace

RecurrentState::~RecurrentState() {
  meter_.remove(storage_.bytes());
  for (const Mark& mark : marks_) meter_.remove(mark.values->owns() ? mark.values->bytes() : 0);
}

void RecurrentState::reserve(Backend& backend, int32_t, int32_t) {
  if (begun_) return;
  storage_ = backend.allocate(2 * mark_bytes(), kLabel);
  begun_ = true;
  meter_.add(storage_.bytes());
  const std::vector<float> zeros(n_values_);
  backend.upload(place(0), zeros.data(), mark_bytes());
}

int64_t RecurrentState::last_cut(int64_t n) const {
  int64_t last = begun_ && n_tokens_ <= n ? n_tokens_ : 0;
  for (const Mark& mark : marks_) {
    if (mark.n_tokens <= n) last = std::max(last, mark.n_tokens);
  }
  return last;
}

void RecurrentState::advance(int64_t n_tokens) {
  now_ = 1 - now_;
  n_tokens_ += n_tokens;
  ++n_steps_;
}

void* RecurrentState::add_mark(Backend& backend, int64_t n) {
  SNAPKV_CHECK(n > (marks_.empty() ? 0 : marks_.back().n_tokens));
  marks_.push_back({n, std::make_shared<Buffer>(backend.allocate(mark_bytes(), kLabel))});
  meter_.add(mark_bytes());
  return marks_.back().values->data();
}

const RecurrentState::Mark* RecurrentState::find(int64_t n) const {
  const auto at = std::find_if(marks_.begin(), marks_.end(),
                               [n](const Mark& mark) { return mark.n_tokens == n; });
  return at == marks_.end() ? nullptr : &*at;
}

void* RecurrentState::mark(int64_t n) const {
  const Mark* const found = find(n);
  SNAPKV_CHECK(found != nullptr);
  return found->values->data();
}

std::vector<int64_t> RecurrentState::marks() const {
  std::vector<int64_t> tokens;
  for (const Mark& mark : marks_) tokens.push_back(mark.n_tokens);
  return tokens;
}

void RecurrentState::share_mark(Backend& backend, const RecurrentState& other, int64_t n) {
  SNAPKV_CHECK(other.n_values_ == n_values_);
  const Mark* const found = other.find(n);
  SNAPKV_CHECK(found != nullptr && n > (marks_.empty() ? 0 : marks_.back().n_tokens));
  if (!found->values->owns()) {
    backend.copy(add_mark(backend, n), found->values->data(), mark_bytes());
    return;
  }
  marks_.push_back(*found);
  meter_.add(mark_bytes());
}

std::vector<const void*> RecurrentState::mark_memory() const {
  std::vector<const void*> memory;
  for (const Mark& mark : marks_) memory.push_back(mark.values->data());
  return memory;
}

void RecurrentState::restore(Backend& backend, const RecurrentState& other, int64_t n) {
  SNAPKV_CHECK(other.n_values_ == n_values_);
  SNAPKV_CHECK(other.last_cut(n) == n);
  reserve(backend, 0, 0);
  n_tokens_ = n;
  if (n == 0) return;
  const Mark* const found = other.find(n);
  backend.copy(place(now_), found != nullptr ? found->values->data() : other.now(), mark_bytes());
}

void RecurrentState::copy_now(Backend& backend, const RecurrentState& other) {
  SNAPKV_CHECK(other.n_values_ == n_values_ && begun_ && other.begun_);
  n_tokens_ = other.n_tokens_;
  backend.copy(place(now_), other.now(), mark_bytes());
}

void RecurrentState::take(RecurrentState& other) {
  SNAPKV_CHECK(other.n_values_ == n_values_ && &other.meter_ == &meter_);
  std::swap(storage_, other.storage_);
  std::swap(begun_, other.begun_);
  std::swap(now_, other.now_);
  std::swap(n_tokens_, other.n_tokens_);
  std::swap(saved_now_, other.saved_now_);
  std::swap(saved_n_tokens_, other.saved_n_tokens_);
  std::swap(n_steps_, other.n_steps_);
  std::swap(marks_, other.marks_);
}

void RecurrentState::snapshot() {
  saved_now_ = now_;
  saved_n_tokens_ = n_tokens_;
  n_steps_ = 0;
}

void RecurrentState::roll_back() {
  SNAPKV_CHECK(n_steps_ <= 1);  // the step before is overwritten
  now_ = saved_now_;
  n_tokens_ = saved_n_tokens_;
  n_steps_ = 0;
}

std::vector<std::pair<int64_t, const void*>> RecurrentState::saved_places() const {
  std::vector<std::pair<int64_t, const void*>> places;
  for (const Mark& mark : marks_) places.emplace_back(mark.n_tokens, mark.values->data());
  if (begun_ && (places.empty() || places.back().first != n_tokens_)) {
    places.emplace_back(n_tokens_, now());
  }
  return places;
}

void RecurrentState::save(Backend& backend, const ByteSink& out) const {
  const auto places = saved_places();
  std::vector<int64_t> numbers = {n_values_, std::ssize(places)};
  for (const auto& [n, values] : places) numbers.push_back(n);
  std::vector<std::byte> bytes(marks_head_bytes(places.size()));
  std::memcpy(bytes.data(), numbers.data(), numbers.size() * sizeof(int64_t));
  out(bytes);
  bytes.resize(mark_bytes());
  for (const auto& [n, values] : places) {
    backend.download(bytes.data(), values, bytes.size());
    out(bytes);
  }
}

size_t RecurrentState::saved_bytes() const {
  const size_t n = saved_places().size();
  return marks_head_bytes(n) + n * mark_bytes();
}

size_t RecurrentState::most_saved_bytes(int64_t n) const {
  const int64_t most = most_marks(n);
  return marks_head_bytes(most) + most * mark_bytes();
}

void RecurrentState::borrow(const SavedState& saved) {
  const std::vector<int64_t> tokens = read_marks(saved, n_values_);
  const std::byte* values = saved.bytes.data() + marks_head_bytes(tokens.size());
  for (const int64_t n : tokens) {
    // never written to
    marks_.push_back(
        {n, std::make_shared<Buffer>(const_cast<std::byte*>(values), mark_bytes(), nullptr)});
    values += mark_bytes();
  }
}

void RecurrentState::load(Backend& backend, const SavedState& saved, int64_t) {
  const std::vector<int64_t> tokens = read_marks(saved, n_values_);
  const int64_t last_token = tokens.empty() ? 0 : tokens.back();
  if (last_token != saved.n_tokens) {
    fail(ErrorCode::kBadModel, "{}: the last state is that after {} tokens, expected {}",
         saved.name, last_token, saved.n_tokens);
  }
  reserve(backend, 0, 0);
  const size_t last = saved.bytes.size() - mark_bytes();
  backend.upload(place(now_), saved.bytes.data() + last, mark_bytes());
  n_tokens_ = last_token;
}

}  // namespace snapkv
