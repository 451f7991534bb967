// SPDX-License-Identifier: MIT
// CompletionAnswers: what OpenAI's chat completions and text completions have in common, plain and
// as chunks of a stream. The formats say what a choice is.
#pragma once

#include "server/api/answers.h"
#include "server/api/fields.h"

namespace snapkv::server {

class CompletionAnswers : public Answers {
 public:
  Json plain() const final;

 protected:
  /// `object`, `chunk_object`: the answer's and a chunk's member "object".
  CompletionAnswers(AnswerOptions options, const char* object, const char* chunk_object,
                    bool includes_usage)
      : Answers(std::move(options)),
        object_(object),
        chunk_object_(chunk_object),
        includes_usage_(includes_usage) {}

  /// All of a choice.
  virtual Json whole_choice(int choice) const = 0;
  /// A choice of a chunk that adds nothing, with all its members.
  virtual Json empty_choice(int choice) const = 0;
  virtual const char* finish_reason(int choice) const {
    return choices()[static_cast<size_t>(choice)].finish_reason();
  }
  void send_chunk(Json choice);

 private:
  Json head(const char* object) const;
  Json chunk(Json choice) const;
  void on_progress(const PromptProgress& progress) final;
  void on_end(int choice) final;
  void on_complete() final;

  const char* const object_;
  const char* const chunk_object_;
  const bool includes_usage_;
};

/// `stream_options.include_usage`.
bool read_includes_usage(const Fields& body, bool stream);

}  // namespace snapkv::server
