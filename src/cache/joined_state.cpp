// SPDX-License-Identifier: MIT
// JoinedState: the state of a layer in which attention and a recurrence work side by side. Its two
// parts know nothing of each other; what concerns rows is asked of rows(), what concerns the
// recurrence of as_recurrent().
#include <cstring>
#include <utility>

#include "base/buffer.h"
#include "base/error.h"
#include "cache/layer_state.h"
#include "cache/recurrent_state.h"

namespace snapkv {
namespace {

size_t padded(size_t bytes) {
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

class JoinedState final : public LayerState {
 public:
  JoinedState(std::unique_ptr<RowState> rows, std::unique_ptr<RecurrentState> recurrent)
      : rows_(std::move(rows)), recurrent_(std::move(recurrent)) {}

  std::string_view kind() const override { return "joined"; }
  RowState* as_rows() override { return rows_.get(); }
  RecurrentState* as_recurrent() override { return recurrent_.get(); }

  void reserve(Backend& backend, int32_t n, int32_t step) override {
    rows_->reserve(backend, n, step);
    recurrent_->reserve(backend, n, step);
  }
  int64_t last_cut(int64_t n) const override { return recurrent_->last_cut(rows_->last_cut(n)); }

  void snapshot() override {
    rows_->snapshot();
    recurrent_->snapshot();
  }
  void roll_back() override {
    rows_->roll_back();
    recurrent_->roll_back();
  }
  // the recurrent part first: if it cannot, nothing may change
  bool keep_first(int32_t n) override { return recurrent_->keep_first(n) && rows_->keep_first(n); }

  void save(Backend& backend, const ByteSink& out) const override {
    const int64_t n_bytes = rows_->saved_bytes();
    std::vector<std::byte> head(padded(sizeof n_bytes));
    std::memcpy(head.data(), &n_bytes, sizeof n_bytes);
    out(head);
    rows_->save(backend, out);
    out(std::vector<std::byte>(padded(n_bytes) - n_bytes));
    recurrent_->save(backend, out);
  }
  size_t saved_bytes() const override {
    return padded(sizeof(int64_t)) + padded(rows_->saved_bytes()) + recurrent_->saved_bytes();
  }
  size_t most_saved_bytes(int64_t n) const override {
    return padded(sizeof(int64_t)) + padded(rows_->most_saved_bytes(n)) +
           recurrent_->most_saved_bytes(n);
  }
  void load(Backend& backend, const SavedState& saved, int64_t reserve) override {
    const auto [rows, recurrent] = parts_of(saved);
    rows_->load(backend, rows, reserve);
    recurrent_->load(backend, recurrent, reserve);
  }
  void borrow(const SavedState& saved) override {
    const auto [rows, recurrent] = parts_of(saved);
    rows_->borrow(rows);
    recurrent_->borrow(recurrent);
  }

  void leave() const override { rows_->leave(); }
  void prefetch() const override { rows_->prefetch(); }
  size_t bytes() const override { return rows_->bytes() + recurrent_->bytes(); }
  size_t bytes_used() const override { return rows_->bytes_used() + recurrent_->bytes_used(); }

 private:
  static std::pair<SavedState, SavedState> parts_of(const SavedState& saved) {
    const size_t head = padded(sizeof(int64_t)), all = saved.bytes.size();
    int64_t n_bytes = -1;
    if (all >= head) std::memcpy(&n_bytes, saved.bytes.data(), sizeof n_bytes);
    if (n_bytes < 0 || static_cast<size_t>(n_bytes) > all - head || padded(n_bytes) > all - head) {
      fail(ErrorCode::kBadModel, "{}: {} bytes, of which {} would be of rows", saved.name, all,
           n_bytes);
    }
    const size_t end = head + padded(n_bytes);
    return {{saved.bytes.subspan(head, n_bytes), saved.n_tokens, saved.name},
            {saved.bytes.subspan(end), saved.n_tokens, saved.name}};
  }

  std::unique_ptr<RowState> rows_;
  std::unique_ptr<RecurrentState> recurrent_;
};

}  // namespace

std::unique_ptr<LayerState> join_states(std::unique_ptr<RowState> rows,
                                        std::unique_ptr<RecurrentState> recurrent) {
  if (recurrent == nullptr) return rows;
  if (rows == nullptr) return recurrent;
  return std::make_unique<JoinedState>(std::move(rows), std::move(recurrent));
}

}  // namespace snapkv
