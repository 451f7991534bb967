// SPDX-License-Identifier: MIT
// Sources: the passages of a document that an answer was taken from. No model is asked: they are
// the sentences that the answer's tokens attended to while they were decoded
// (Session::trace_answer).
//
//   session.prefill(tokens);
//   session.trace_answer();
//   while (generator.step()) ...
//   const std::string_view documents[] = {text};
//   auto sources = find_sources(model, tokens, session.answer_attention(), documents);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "snapkv/chat.h"
#include "snapkv/engine.h"

namespace snapkv {

/// A sentence of a document.
struct SourcePassage {
  size_t document = 0;  ///< index among the documents
  size_t begin = 0;     ///< first byte in it
  size_t end = 0;       ///< one past the last byte; no white space at either end
  float attention = 0;  ///< the most that the answer attends to a token of it, 0 to 1
};

struct SourceOptions {
  /// Sentences with at least this share of the most attended one's attention. Less finds more of
  /// what an answer combines, and more that it does not need (docs/documents.md).
  double share = 0.97;
  float least = 0.02F;  ///< attention below which nothing is a source
  size_t most = 5;      ///< sources returned, the most attended ones
};

/// The sources in `documents`, in their order. `tokens` are those that the session had read when
/// the trace began (the prompt's last ones will do, if the documents lie within them), `attention`
/// is Session::answer_attention(), of which the last tokens.size() entries belong to them.
/// Documents that the tokens don't spell, since a template has changed them, have no sources. Empty
/// if the answer attends to nothing of the documents. Throws kUsage if the tokens spell none of
/// them.
std::vector<SourcePassage> find_sources(const Model& model, std::span<const int32_t> tokens,
                                        std::span<const float> attention,
                                        std::span<const std::string_view> documents,
                                        const SourceOptions& options = {});

/// What a message says before its last paragraph, which asks about the rest; empty if it has one
/// paragraph only.
std::string_view text_before_question(std::string_view message);

/// The sentences of a text, as [begin, end) without the white space around them: they end after .!?
/// and their like, at empty lines, and before lines that begin an item, a heading or a row of a
/// table. What is longer than 600 bytes is divided at ends of lines, or at blanks.
std::vector<ByteRange> split_sentences(std::string_view text);

}  // namespace snapkv
