// SPDX-License-Identifier: MIT
#include "cli/generate/long_prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/timer.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/generate/generation.h"
#include "long_documents/estimate.h"
#include "long_documents/part_answers.h"
#include "snapkv/sources.h"

namespace snapkv::cli {
namespace {

using long_documents::Condensed;
using long_documents::LongDocument;
using long_documents::LongMode;
using long_documents::LongPlan;
using long_documents::PartAnswer;
using long_documents::TextPart;
using long_documents::Way;

constexpr int64_t kAnswerTokens = 1024;  // room for an answer to which no limit is given
/// Tokens at the seams between texts that are tokenized one by one and together.
constexpr int64_t kSeamTokens = 16;

std::string_view question_of(const PromptText& prompt) {
  std::string_view question = std::string_view(prompt.text).substr(prompt.document_bytes);
  while (!question.empty() && question.front() == '\n') question.remove_prefix(1);
  return question;
}

int64_t answer_room(int64_t wanted, int64_t n_ctx) {
  return std::min(wanted < 0 ? kAnswerTokens : wanted, n_ctx / 4);
}

long_documents::Room room_of(const LongRun& run, std::string_view question) {
  const auto n_beside = [&](const std::string& asked) {
    return std::ssize(run.tokens_of("\n\n" + asked)) + kSeamTokens;
  };
  const std::string part = long_documents::part_question(question, 99, 100, run.in_chat);
  const int64_t n_part_answer = answer_room(long_documents::kPartAnswerTokens, run.n_ctx);
  return {.n_once = run.n_ctx - n_beside(std::string(question)) -
                    answer_room(run.answer_tokens, run.n_ctx),
          .n_part = run.n_ctx - n_beside(part) - n_part_answer};
}

std::string joined_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

/// "pages 3-17", or the share of the text where there are no pages.
std::string place_text(const TextPart& part) {
  return long_documents::page_text(part.first_page, part.last_page);
}

/// Calls `work`; where a signal ends it, the error says so, and at what `place` of the work.
template <typename Work>
auto unless_stopped(const std::string& place, const Work& work) {
  try {
    return work();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kCancelled || !interrupted()) throw;
    fail(ErrorCode::kCancelled, "stopped by {} {}", interruption(), place);
  }
}

/// Reads the parts one by one, and asks each the question.
class PartReader {
 public:
  PartReader(const LongRun& run, const LongDocument& document, std::string_view question,
             const LongPlan& plan, int64_t n_once, ProgressDisplay& progress)
      : run_(run),
        document_(document),
        question_(question),
        plan_(plan),
        n_once_(n_once),
        progress_(progress) {
    for (const TextPart& part : plan.parts) n_all_ += part.n_tokens;
  }

  /// By how many tokens the longest part is too long for the context; negative where all fit.
  int64_t excess() const {
    const int64_t n_answer = answer_room(long_documents::kPartAnswerTokens, run_.n_ctx);
    int64_t most = 0;
    for (size_t i = 0; i < plan_.parts.size(); ++i) {
      most = std::max<int64_t>(most, std::ssize(tokens_of(i)));
    }
    return most + n_answer - run_.n_ctx;
  }

  /// Seconds that all parts and the answer after them will take, from short readings of the first
  /// part.
  double estimate() {
    const std::vector<int32_t> tokens = tokens_of(0);
    const auto measure = [&](int64_t n) {
      n = std::min<int64_t>(n, std::ssize(tokens));
      Session session(run_.model, run_.session);
      const Timer timer;
      session.prefill(std::span(tokens).first(static_cast<size_t>(n)),
                      {.progress = progress_.callback()});
      const long_documents::Reading reading = {n, timer.seconds()};
      const Timer since_read;
      constexpr int kSteps = 4;
      for (int i = 0; i < kSteps; ++i) session.decode(tokens[static_cast<size_t>(n) - 1]);
      step_seconds_ = since_read.seconds() / kSteps;
      return reading;
    };
    const auto measure_unless_stopped = [&](int64_t n) {
      return unless_stopped("while it estimated the time", [&] { return measure(n); });
    };
    const long_documents::Reading shorter = measure_unless_stopped(128);
    const long_documents::Reading longer = measure_unless_stopped(512);
    constexpr double kTypicalAnswer = 40;  // tokens
    constexpr int64_t kTypicalSources = 500;
    const auto n_parts = std::ssize(plan_.parts);
    std::vector<TextPart> readings = plan_.parts;
    readings.push_back({.n_tokens = std::min(n_once_, n_parts * kTypicalSources)});
    return long_documents::estimate_seconds(run_.model->info(), shorter, longer, readings) +
           step_seconds_ * kTypicalAnswer * static_cast<double>(readings.size());
  }

  std::vector<PartAnswer> read() {
    std::vector<PartAnswer> answers;
    const Timer timer;
    for (size_t i = 0; i < plan_.parts.size(); ++i) {
      const std::string place = fmt::format("in part {} of {}", i + 1, plan_.parts.size());
      answers.push_back(unless_stopped(place, [&] { return answer(i, timer); }));
      n_done_ += plan_.parts[i].n_tokens;
    }
    progress_.set_title("");
    progress_.clear();
    return answers;
  }

 private:
  std::string_view text_of(size_t i) const {
    const TextPart& part = plan_.parts[i];
    return document_.text.substr(part.begin, part.end - part.begin);
  }
  /// Names the document in whose middle a part begins, where there are several.
  std::string heading_of(size_t i) const {
    const size_t begin = plan_.parts[i].begin;
    const auto* mark = long_documents::document_at(document_.documents, begin);
    return mark != nullptr && begin > mark->begin ? "[" + mark->name + "]\n" : "";
  }
  std::vector<int32_t> tokens_of(size_t i) const {
    const std::string asked =
        long_documents::part_question(question_, i, plan_.parts.size(), run_.in_chat);
    return run_.tokens_of(heading_of(i) + std::string(text_of(i)) + "\n\n" + asked);
  }

  /// Shows how far the reading of all parts is.
  void show(size_t i, double fraction, const Timer& timer) {
    const std::string place = place_text(plan_.parts[i]);
    progress_.set_title(fmt::format("part {} of {}{}", i + 1, plan_.parts.size(),
                                    place.empty() ? "" : ", " + place));
    const double n =
        static_cast<double>(n_done_) + fraction * static_cast<double>(plan_.parts[i].n_tokens);
    progress_.show_fraction(n / static_cast<double>(std::max<int64_t>(n_all_, 1)), timer.seconds());
  }

  PartAnswer answer(size_t i, const Timer& timer) {
    const Timer since_start;
    const std::vector<int32_t> tokens = tokens_of(i);
    Session session(run_.model, run_.session);
    session.prefill(tokens, {.progress = [&](const Progress& p) {
                      show(i, p.fraction, timer);
                      return !interrupted();
                    }});
    Sampler sampler({.temperature = 0});  // what the part says, not one way to say it
    sampler.accept(tokens);
    session.trace_answer();
    Generation generation;
    generate(
        session, sampler, {.max_tokens = long_documents::kPartAnswerTokens},
        [&](std::string_view, int64_t) { show(i, 1, timer); }, generation);
    if (generation.stop_reason == StopReason::cancelled) {
      fail(ErrorCode::kCancelled, "the answer of part {} was cancelled", i + 1);
    }
    PartAnswer answer;
    answer.part = i;
    if (!run_.in_chat || !long_documents::is_none(generation.text)) {
      answer.text = std::move(generation.text);
    }
    const std::string_view text[] = {text_of(i)};
    const size_t begin = plan_.parts[i].begin;
    for (const SourcePassage& source :
         find_sources(*run_.model, tokens, session.answer_attention(), text)) {
      answer.sources.push_back({begin + source.begin, begin + source.end, source.attention});
    }
    answer.seconds = since_start.seconds();
    return answer;
  }

  const LongRun& run_;
  const LongDocument& document_;
  const std::string_view question_;
  const LongPlan& plan_;
  const int64_t n_once_;  // tokens that the answer after the parts may be made from
  ProgressDisplay& progress_;
  int64_t n_all_ = 0, n_done_ = 0;
  double step_seconds_ = 0;
};

std::string said_of_length(const PromptText& prompt, const LongPlan& plan, int64_t n_ctx) {
  const size_t n = prompt.documents.size();
  return fmt::format("snapkv: {} about {}, more than the context of {}: ",
                     n > 1 ? fmt::format("the {} documents have", n) : "the document has",
                     plural(plan.n_document, "token"), n_ctx);
}

std::string said_of_passages(const LongPlan& plan, const char* it) {
  return fmt::format(
      "reading the {0} of {4} ({1}) that {2} most about {3}; --long parts reads all of {4}\n",
      plural(std::ssize(plan.parts), "passage"), plural(plan.n_read, "token"),
      plan.parts.size() == 1 ? "says" : "say", joined_words(plan.words), it);
}

std::string said_of_first(const LongPlan& plan, const char* it) {
  const TextPart end = plan.parts.empty() ? TextPart{} : plan.parts.back();
  const std::string page = end.last_page > 0 ? fmt::format(", up to page {}", end.last_page) : "";
  return fmt::format("reading the first {}, {}% of {}{}\n", plural(plan.n_read, "token"),
                     100 * plan.n_read / std::max<int64_t>(plan.n_document, 1), it, page);
}

}  // namespace

CLI::Option* add_long_option(CLI::App& app, LongMode& mode) {
  const std::string default_name = mode == LongMode::refuse ? "refuse" : "auto";
  const auto set = [&mode](const std::string& name) { mode = *long_documents::long_mode(name); };
  return app
      .add_option_function<std::string>(
          "--long", set,
          "What is done with a document longer than the context: parts reads it in parts that fit, "
          "and answers from their answers; first reads its beginning; auto reads the passages that "
          "have the question's rare words, or parts where there are none; refuse is an error")
      ->check([](const std::string& name) {
        return long_documents::long_mode(name)
                   ? std::string()
                   : fmt::format("{}, not {}", long_documents::kLongModes, name);
      })
      ->type_name("WAY")
      ->default_str(default_name);
}

LongPrompt read_long(const LongRun& run, const PromptText& prompt, LongMode mode,
                     ProgressDisplay& progress) {
  const LongDocument document = {std::string_view(prompt.text).substr(0, prompt.document_bytes),
                                 prompt.pages, prompt.documents};
  const std::string_view question = question_of(prompt);
  const int64_t n_newline = std::ssize(run.model->tokenize("\n", /*add_bos=*/false));
  const auto count = [&](std::string_view text) {  // of a text that others stand before
    const std::string line = "\n" + std::string(text);
    return std::ssize(run.model->tokenize(line, /*add_bos=*/false)) - n_newline;
  };
  const std::string rest = prompt.text.substr(prompt.document_bytes);
  const auto excess_of = [&](const Condensed& condensed) {
    return std::ssize(run.tokens_of(condensed.text + rest)) +
           answer_room(run.answer_tokens, run.n_ctx) - run.n_ctx;
  };
  const auto excess = [&](const LongPlan& plan) {
    if (plan.way != Way::parts) return excess_of(long_documents::condense(document, plan));
    return PartReader(run, document, question, plan, 0, progress).excess();
  };
  const long_documents::Room room = room_of(run, question);
  LongPrompt found;
  found.plan = long_documents::plan_that_fits(document, question, mode, room, count, excess);
  const LongPlan& plan = found.plan;
  const std::string length = said_of_length(prompt, plan, run.n_ctx);
  const char* const it = prompt.documents.size() > 1 ? "them" : "it";
  if (plan.way != Way::parts) {
    write_stderr(length +
                 (plan.way == Way::first ? said_of_first(plan, it) : said_of_passages(plan, it)));
    found.condensed = long_documents::condense(document, plan);
    return found;
  }
  PartReader reader(run, document, question, plan, room.n_once, progress);
  const double seconds = reader.estimate();
  progress.clear();
  write_stderr(fmt::format("{}reading {} in {}, in about {}\n", length, it,
                           plural(std::ssize(plan.parts), "part"), format_wait(seconds)));
  found.answers = reader.read();
  found.condensed = long_documents::condense_to_fit(document, plan, found.answers, run.in_chat,
                                                    room.n_once, count, excess_of);
  const auto n_answers = std::count_if(found.answers.begin(), found.answers.end(),
                                       [](const PartAnswer& a) { return !a.text.empty(); });
  write_stderr(fmt::format("snapkv: {} of {} have an answer; answering from these and {}\n",
                           n_answers, plural(std::ssize(plan.parts), "part"),
                           plural(std::ssize(found.condensed.excerpts), "passage")));
  return found;
}

std::vector<CitedPassage> cited_passages(Session& session, std::span<const int32_t> tokens,
                                         const LongPrompt& found, const PromptText& prompt) {
  const Condensed& condensed = found.condensed;
  const std::string_view all = condensed.text;
  std::vector<std::string_view> texts;
  for (const long_documents::Excerpt& each : condensed.excerpts) {
    texts.push_back(all.substr(each.begin, each.n_bytes));
  }
  for (const long_documents::QuotedAnswer& each : condensed.quoted) {
    texts.push_back(all.substr(each.begin, each.n_bytes));
  }
  std::vector<CitedPassage> passages;
  const auto add = [&](size_t begin, size_t end, float attention) {
    const bool is_known = std::any_of(passages.begin(), passages.end(), [&](const CitedPassage& p) {
      return p.source.begin == begin;
    });
    if (is_known) return;
    passages.push_back({{.begin = begin, .end = end, .attention = attention},
                        prompt.text.substr(begin, end - begin),
                        long_documents::page_at(prompt.pages, begin)});
  };
  for (const CitedPassage& each : cited_passages(session, tokens, texts)) {
    const SourcePassage& source = each.source;
    if (source.document < condensed.excerpts.size()) {
      const size_t begin = condensed.excerpts[source.document].document_begin + source.begin;
      add(begin, begin + (source.end - source.begin), source.attention);
      continue;
    }
    // a part's answer: where that was taken from
    const auto& quoted = condensed.quoted[source.document - condensed.excerpts.size()];
    for (const auto& of_part : found.answers[quoted.answer].sources) {
      add(of_part.begin, of_part.end, of_part.attention);
    }
  }
  std::sort(passages.begin(), passages.end(), [](const CitedPassage& a, const CitedPassage& b) {
    return a.source.begin < b.source.begin;
  });
  return passages;
}

}  // namespace snapkv::cli
