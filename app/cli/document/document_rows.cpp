// SPDX-License-Identifier: MIT
#include "cli/document/document_rows.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "cli/common/number_options.h"
#include "cli/common/units.h"
#include "snapkv/options.h"

namespace snapkv::cli {
namespace {

/// Fewer tokens are read as fast as a file is opened and checked.
constexpr int64_t kLeastStored = 512;
/// Fewer rows are computed as fast as they are copied.
constexpr int64_t kLeastUsed = 32;
/// The part of the free memory that the rows may take until they are written.
constexpr size_t kMemoryShare = 4;

/// A hash of the options that change what a model computes; the others only say where and how fast.
uint64_t key_of(const ModelOptions& options, const SessionOptions& session) {
  constexpr std::string_view kHarmless[] = {"model",     "device",        "weights",
                                            "n_threads", "check_tensors", "draft_model"};
  Hash64 hash;
  for (const OptionInfo& info : model_option_table().infos()) {
    if (std::find(std::begin(kHarmless), std::end(kHarmless), info.name) != std::end(kHarmless)) {
      continue;
    }
    hash.add(info.name + "=" + value_text(model_option_table().get(options, info.name)) + ";");
  }
  if (session.prefill_attention != PromptAttention::dense) {
    hash.add(fmt::format("attention_share={};", session.attention_share));
  }
  return hash.value();
}

int64_t n_alike(std::span<const int32_t> a, std::span<const int32_t> b) {
  const auto n = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin();
}

}  // namespace

std::string names_of(const std::vector<std::string>& paths) {
  std::string names;
  for (const std::string& path : paths) {
    std::filesystem::path file(path);
    if (file.filename().empty()) file = file.parent_path();  // "notes/"
    names += (names.empty() ? "" : ", ") + file.filename().string();
  }
  return names;
}

void add_store_options(CLI::App& app, StoreSettings& settings) {
  constexpr const char* kGroup = "Stored documents";
  app.add_flag("--no-store", settings.off,
               "Neither keep the documents that are read for further questions nor use those that "
               "were kept (snapkv documents)")
      ->group(kGroup);
  app.add_option("--store-limit", settings.limit,
                 "The most that all stored documents may take on the disk, as in 10GiB; those used "
                 "least recently leave first")
      ->transform(byte_size(0))
      ->type_name("SIZE")
      ->default_str("4GiB")
      ->group(kGroup);
}

int64_t usable_rows(const KvPrefix& rows, std::span<const int32_t> prompt, const PolicyConfig& kv) {
  if (policy_info(kv.name).observes) return 0;
  const int64_t window_size = std::max(1, policy_window(kv));
  const int64_t n =
      rows.last_cut(std::min(n_alike(rows.tokens(), prompt), std::ssize(prompt) - window_size));
  return n >= kLeastUsed ? n : 0;
}

bool is_of_file(const Error& error) {
  return error.code() == ErrorCode::kBadModel || error.code() == ErrorCode::kUsage;
}

DocumentRows::DocumentRows(const StoreSettings& settings, std::shared_ptr<const Model> model,
                           const ModelOptions& model_options, const SessionOptions& session,
                           std::string name, NoteFn note)
    : settings_(settings),
      model_(std::move(model)),
      options_key_(key_of(model_options, session)),
      name_(std::move(name)),
      note_(std::move(note)),
      folder_(StoredDocuments::default_folder()) {}

void DocumentRows::set_document(std::vector<int32_t> tokens) {
  const bool is_off = settings_.off || settings_.limit == 0 || folder_.folder().empty();
  document_ = std::move(tokens);
  path_.reset();
  if (is_off || model_->on_device() || std::ssize(document_) < kLeastStored) return;
  Hash64 key;
  key.add(model_->fingerprint());
  key.add(options_key_);
  key.add(name(stored_kv_type(model_->info())));
  key.add(std::as_bytes(std::span(document_)));
  path_ = folder_.path_of(key.value());
}

void DocumentRows::note(const std::string& text) const { note_(fmt::format("{} {}", name_, text)); }

std::shared_ptr<const KvPrefix> DocumentRows::load() {
  std::error_code error;
  if (!is_usable() || !std::filesystem::exists(*path_, error)) return nullptr;
  try {
    auto rows = KvPrefix::load(model_, *path_);
    StoredDocuments::touch(*path_);
    return rows;
  } catch (const Error& e) {
    drop(e);
    return nullptr;
  }
}

void DocumentRows::drop(const Error& error) {
  note(fmt::format("is read again, since what was stored of it can't be used: {}", error.what()));
  StoredDocuments::remove(*path_);
}

void DocumentRows::note_use(int64_t n_tokens) const {
  note(fmt::format("comes from the store: {} need not be read again (--no-store reads them)",
                   plural(n_tokens, "token")));
}

bool DocumentRows::wants_rows(int64_t n_prompt, const SessionOptions& options) {
  if (!is_usable() || policy_info(options.kv.name).observes) return false;
  const ModelInfo& info = model_->info();
  const uint64_t bytes = kv_bytes_per_token(info, stored_kv_type(info)) * document_.size();
  if (bytes > settings_.limit) {
    note(
        fmt::format("is not stored for further questions: it would take {}, and --store-limit is "
                    "{}",
                    format_bytes(bytes), format_bytes(settings_.limit)));
    return false;
  }
  const size_t memory = KvPrefix::bytes_for(info, options, n_prompt);
  if (options.memory_limit == 0 && memory <= free_memory() / kMemoryShare) return true;
  note(
      fmt::format("is not stored for further questions: all its rows would take {} of memory "
                  "while it is read; snapkv compress stores what is chosen of it",
                  format_bytes(memory)));
  return false;
}

void DocumentRows::save(const KvPrefix& rows) {
  if (!is_usable()) return;
  const int64_t n_tokens = n_alike(rows.tokens(), document_);
  if (n_tokens < kLeastStored) return;
  const ModelInfo& info = model_->info();
  const DType type = stored_kv_type(info);
  try {
    if (!folder_.make_room(kv_bytes_per_token(info, type) * n_tokens, settings_.limit)) {
      return note("is not stored for further questions: the disk has too little room");
    }
    folder_.remove_abandoned();
    rows.save(*path_, type, stored_notes(name_), n_tokens);
    std::error_code error;
    note(
        fmt::format("is stored for further questions, in {} (--no-store does not; snapkv "
                    "documents lists them)",
                    format_bytes(std::filesystem::file_size(*path_, error))));
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kCancelled) throw;
    note(fmt::format("is not stored for further questions: {}", e.what()));
  }
}

int64_t read_with_store(Session& session, std::span<const int32_t> tokens, DocumentRows& store,
                        const ProgressFn& progress) {
  PrefillPrompt prompt = {.sessions = {&session}, .tokens = {tokens.begin(), tokens.end()}};
  prompt.options.progress = progress;
  const auto read = [](PrefillPrompt now) {
    Prefill prefill(std::move(now));
    while (!prefill.step()) {
    }
    return prefill.take_prefix();
  };
  const PolicyConfig& kv = session.options().kv;
  if (const std::shared_ptr<const KvPrefix> rows = store.load()) {
    prompt.options.n_from_prefix = usable_rows(*rows, tokens, kv);
    if (prompt.options.n_from_prefix > 0) {
      prompt.options.prefix = rows;
      try {
        read(prompt);
        store.note_use(prompt.options.n_from_prefix);
        return prompt.options.n_from_prefix;
      } catch (const Error& e) {
        if (!is_of_file(e)) throw;
        store.drop(e);  // layers are checked when they are used
      }
      prompt.options.prefix = nullptr;
      prompt.options.n_from_prefix = 0;
    }
  }
  prompt.makes_prefix = store.wants_rows(std::ssize(tokens), session.options());
  const auto rows = read(std::move(prompt));
  if (rows) store.save(*rows);
  return 0;
}

}  // namespace snapkv::cli
