// SPDX-License-Identifier: MIT
// Loads a model; its text interface.
#include <fmt/core.h>

#include "base/available_memory.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timer.h"
#include "engine/core/draft_reader.h"
#include "engine/core/model_impl.h"
#include "engine/files/open_model.h"
#include "format/check_tensors.h"
#include "model/packing.h"
#include "snapkv/options.h"

#define SNAPKV_STRING_(x) #x
#define SNAPKV_STRING(x) SNAPKV_STRING_(x)

namespace snapkv {

const char* version() { return SNAPKV_STRING(SNAPKV_VERSION); }

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

namespace {

/// The smaller model that guesses, if the options name one.
std::shared_ptr<const Model> load_draft_model(const ModelOptions& options, const Backend& backend) {
  if (options.draft_model.empty()) return nullptr;
  if (backend.is_device()) {
    fail(ErrorCode::kUsage, "{} is for the CPU; a GPU has {} lookup", OptionName("draft_model"),
         OptionName("draft"));
  }
  return Model::load(draft_model_options(options));
}

}  // namespace

std::shared_ptr<const Model> Model::load(const ModelOptions& options) {
  const Timer timer;
  const auto report = [&](double fraction) {
    if (!options.progress) return;
    Progress p;
    p.phase = Phase::load;
    p.fraction = fraction;
    p.seconds = timer.seconds();
    if (!options.progress(p))
      fail(ErrorCode::kCancelled, "{}: loading was cancelled", options.path);
  };
  model_option_table().check(options);
  report(0.0);
  ReadOptions read;
  if (options.weights == WeightMemory::copy) read.access = FileAccess::copied;
  read.most_copied = available_memory();
  auto impl = std::make_unique<Impl>(open_model(options, read));
  report(0.3);
  impl->backend = Backend::make(
      {.device = options.device, .n_threads = options.n_threads, .compute = options.compute});
  if (options.check_tensors) {
    check_tensors(impl->file, impl->backend->n_threads(),
                  [&](double fraction) { report(0.3 + 0.3 * fraction); });
  }
  impl->architecture = Architecture::make(impl->file);
  impl->weight_pages.emplace(impl->file, impl->backend->arranged_weights(),
                             impl->backend->is_device() ? WeightMemory::mapped : options.weights);
  impl->backend->place_weights(impl->architecture->weights());
  report(0.6);
  impl->tokenizer = Tokenizer::from_gguf(impl->file);
  ModelSpec spec = impl->architecture->spec();
  spec.compute = options.compute;
  impl->info = make_info(impl->file, spec, impl->architecture);
  if (impl->tokenizer->n_vocab() != impl->info.n_vocab) {
    fail(ErrorCode::kBadModel, "{}: tokenizer.ggml.tokens has {} entries, the embedding {} rows",
         options.path, impl->tokenizer->n_vocab(), impl->info.n_vocab);
  }
  impl->draft_model = load_draft_model(options, *impl->backend);
  const std::shared_ptr<const Model> draft = impl->draft_model;
  if (draft != nullptr) impl->info.draft = {draft, &draft->info()};
  impl->file.check_unchanged();
  const std::shared_ptr<const Model> model(new Model(std::move(impl)));
  if (draft != nullptr) check_draft_vocabulary(*model, *draft);
  report(1.0);
  return model;
}

const ModelInfo& Model::info() const { return impl_->info; }
std::shared_ptr<const Model> Model::draft_model() const { return impl_->draft_model; }
uint64_t Model::fingerprint() const {
  std::call_once(impl_->fingerprinted, [this] { impl_->fingerprint = impl_->file.fingerprint(); });
  return impl_->fingerprint;
}
std::string Model::backend_description() const { return impl_->backend->description(); }
size_t Model::device_bytes_peak() const { return impl_->backend->peak_memory(); }
void Model::reset_device_peak() const { impl_->backend->reset_peak_memory(); }
bool Model::on_device() const { return impl_->backend->is_device(); }
size_t Model::weights_to_move() const {
  const size_t of_draft = draft_model() != nullptr ? draft_model()->weights_to_move() : 0;
  return impl_->weight_pages->bytes_to_move() + of_draft;
}
DType Model::compute_dtype() const { return impl_->backend->compute_dtype(); }
MemoryPlan Model::plan(const SessionOptions& options, int64_t n_tokens) const {
  return plan_memory(info(), options, n_tokens, compute_dtype(),
                     std::string(impl_->backend->device()), impl_->backend->n_threads());
}
bool Model::rounds_activations() const { return impl_->backend->rounds_activations(); }
bool Model::rounds_prompts() const {
  return snapkv::rounds_prompts(*impl_->backend, info().file_type);
}

const Tokenizer& Model::tokenizer() const { return *impl_->tokenizer; }
ModelChat Model::chat() const { return chat_of(impl_->file); }
std::vector<int32_t> Model::tokenize(std::string_view text, bool add_special,
                                     bool parse_special) const {
  return impl_->tokenizer->encode(text, add_special, parse_special);
}
std::vector<int32_t> Model::tokenize(const RenderedChat& chat, bool add_bos) const {
  return impl_->tokenizer->encode_chat(chat, add_bos);
}
std::string Model::piece(int32_t id, bool special) const {
  return impl_->tokenizer->piece(id, special);
}
std::string Model::detokenize(std::span<const int32_t> ids) const {
  return impl_->tokenizer->decode(ids);
}
bool Model::is_end_of_generation(int32_t id) const {
  return impl_->tokenizer->is_end_of_generation(id);
}

}  // namespace snapkv
