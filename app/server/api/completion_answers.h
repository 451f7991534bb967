// SPDX-License-Identifier: MIT
// CompletionAnswers: the common part of OpenAI's chat completions and text completions, plain and
// in chunks of a stream. Derived classes define a choice.
#pragma once

#include "server/api/answers.h"
#include "server/api/fields.h"

namespace snapkv::server {

class CompletionAnswers : public Answers {
 public:
  Json plain() const final;

 protected:
  /// `object`, `chunk_object`: value of "object" in the answer and in a chunk.
  CompletionAnswers(AnswerOptions options, const char* object, const char* chunk_object,
                    bool includes_usage)
      : Answers(std::move(options)),
        object_(object),
        chunk_object_(chunk_object),
        includes_usage_(includes_usage) {}

  /// A complete choice.
  virtual Json whole_choice(size_t choice) const = 0;
  /// A choice in a chunk that adds nothing, but has all members.
  virtual Json empty_choice(size_t choice) const = 0;
  virtual const char* finish_reason(size_t choice) const {
    return choices()[choice].finish_reason();
  }
  void send_chunk(Json choice);
  void on_end(size_t choice) override;

 private:
  Json head(const char* object) const;
  Json chunk(Json choice) const;
  void on_progress(const PromptProgress& progress) final;
  void on_complete() final;

  const char* const object_;
  const char* const chunk_object_;
  const bool includes_usage_;
};

/// Reads `stream_options.include_usage`.
bool read_includes_usage(const Fields& body, bool stream);

}  // namespace snapkv::server
