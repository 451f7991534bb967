// SPDX-License-Identifier: MIT
#include "server/api/long_reading.h"

#include <algorithm>
#include <utility>

#include "long_documents/part_answers.h"
#include "server/api/conversation.h"
#include "snapkv/sources.h"

namespace snapkv::server {
namespace {

using long_documents::Condensed;
using long_documents::PartAnswer;
using long_documents::TextPart;
using long_documents::Way;

constexpr int64_t kAnswerRoom = 1024;  // for an answer without max_tokens
/// Tokens at the seams between texts that are tokenized one by one and together.
constexpr int64_t kSeamTokens = 16;

/// The byte where the n-th character of a text begins.
size_t byte_of(std::string_view text, int64_t n) {
  size_t byte = 0;
  for (; byte < text.size(); ++byte) {
    if ((text[byte] & 0xC0) == 0x80) continue;
    if (n-- == 0) break;
  }
  return byte;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::string user_text(const Json& message) {
  const auto content = message.find("content");
  const bool is_users = message.value("role", "") == "user" && content != message.end();
  return is_users && content->is_string() ? content->get<std::string>() : "";
}

long_documents::PageMarks form_feed_pages(std::string_view text) {
  std::vector<size_t> pages;
  for (size_t at = text.find('\f'); at != std::string_view::npos; at = text.find('\f', at + 1)) {
    if (pages.empty()) pages.push_back(0);
    pages.push_back(at + 1);
  }
  long_documents::PageMarks marks;
  long_documents::add_pages(marks, pages, 0);
  return marks;
}

}  // namespace

LongReading::LongReading(chat::Conversation conversation, const ApiContext& context)
    : conversation_(std::move(conversation)), context_(context) {}

std::shared_ptr<LongReading> LongReading::begin(const chat::Conversation& conversation,
                                                const ApiContext& context, const Request& request) {
  const PromptFit fit = context.engine.fit(request);
  if (fit.n_tokens <= fit.most_tokens) return nullptr;
  std::shared_ptr<LongReading> reading(new LongReading(conversation, context));
  if (!reading->find_document()) return nullptr;
  reading->plan(request, fit.most_tokens);
  return reading;
}

bool LongReading::find_document() {
  const Json& messages = conversation_.messages;
  const std::string last = user_text(messages.back());
  if (last.empty()) return false;
  const std::string before(text_before_question(last));
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool is_last = i + 1 == messages.size();
    std::string text = is_last ? before : user_text(messages[i]);
    if (text.size() <= document_.size()) continue;
    message_ = i;
    document_ = std::move(text);
  }
  if (document_.empty()) return false;
  rest_ = message_ + 1 == messages.size() ? last.substr(before.size()) : "";
  question_ = last.substr(before.size());
  question_.erase(0, std::min(question_.find_first_not_of('\n'), question_.size()));
  pages_ = form_feed_pages(document_);
  return true;
}

/// Tokens of a text that others stand before.
int64_t LongReading::count(std::string_view text) const {
  const auto n_tokens = [&](const std::string& line) {
    return std::ssize(context_.model().tokenize(line, /*add_bos=*/false));
  };
  return n_tokens("\n" + std::string(text)) - n_tokens("\n");
}

Prompt LongReading::prompt_with(const std::string& text) const {
  chat::Conversation conversation = conversation_;
  conversation.messages[message_]["content"] = text + rest_;
  std::vector<std::string> warnings;  // the request has them already
  Prompt prompt;
  prompt.chat = render(conversation, context_, warnings);
  prompt.tokens = context_.model().tokenize(prompt.chat);
  return prompt;
}

std::string LongReading::part_text(size_t part) const {
  const TextPart& range = plan_.parts[part];
  return document_.substr(range.begin, range.end - range.begin);
}

/// The part and the question alone, after the system message.
Prompt LongReading::part_prompt(size_t part) const {
  const bool is_known = part < plan_.parts.size();
  const size_t n = is_known ? plan_.parts.size() : part;
  chat::Conversation conversation;
  conversation.template_variables = conversation_.template_variables;
  conversation.answers_at_once = true;
  const Json& first = conversation_.messages.front();
  if (first.value("role", "") == "system") conversation.messages.push_back(first);
  const std::string text =
      (is_known ? part_text(part) : "") + "\n\n" +
      long_documents::part_question(question_, is_known ? part : part - 1, n, /*in_chat=*/true);
  conversation.messages.push_back({{"role", "user"}, {"content", text}});
  std::vector<std::string> warnings;
  Prompt prompt;
  prompt.chat = render(conversation, context_, warnings);
  prompt.tokens = context_.model().tokenize(prompt.chat);
  return prompt;
}

void LongReading::plan(const Request& request, int64_t most_tokens) {
  const int64_t wanted = request.max_tokens < 0 ? kAnswerRoom : request.max_tokens;
  const int64_t n_answer = std::min(wanted, most_tokens / 4);
  const int64_t n_part_answer = std::min(long_documents::kPartAnswerTokens, most_tokens / 4);
  most_prompt_ = most_tokens - n_answer;
  room_ = {
      .n_once = most_prompt_ - std::ssize(prompt_with("").tokens) - kSeamTokens,
      .n_part = most_tokens - std::ssize(part_prompt(100).tokens) - kSeamTokens - n_part_answer};
  const auto excess = [&](const long_documents::LongPlan& plan) {
    plan_ = plan;  // what part_prompt() reads
    if (plan.way != Way::parts) return excess_of(long_documents::condense(document(), plan));
    int64_t most = 0;
    for (size_t i = 0; i < plan.parts.size(); ++i) {
      most = std::max<int64_t>(most, std::ssize(part_prompt(i).tokens));
    }
    return most + n_part_answer - most_tokens;
  };
  plan_ = long_documents::plan_that_fits(
      document(), question_, request.long_mode, room_,
      [this](std::string_view text) { return count(text); }, excess);
}

int64_t LongReading::excess_of(const Condensed& condensed) const {
  return std::ssize(prompt_with(condensed.text).tokens) - most_prompt_;
}

std::optional<Request> LongReading::next(const Request& request) {
  if (plan_.way != Way::parts || n_asked_ == plan_.parts.size()) return std::nullopt;
  Request part;
  part.id = request.id;
  part.session = request.session;
  part.sampler.temperature = 0;  // what the part says, not one way to say it
  part.max_tokens = long_documents::kPartAnswerTokens;
  part.reports_progress = request.reports_progress;
  part.kv_report = KvReportLevel::none;
  part.reuses = request.reuses;
  part.timeout = request.timeout;
  part.prompt = part_prompt(n_asked_);
  part.citable = {{0, part_text(n_asked_)}};
  ++n_asked_;
  return part;
}

std::optional<PromptProgress> LongReading::take(const Update& update) {
  const size_t i = n_asked_ - 1;
  if (const auto* part = std::get_if<AnswerPart>(&update)) {
    answer_ += part->text;
  } else if (const auto* read = std::get_if<PromptRead>(&update)) {
    seconds_ += read->seconds;
  } else if (const auto* end = std::get_if<AnswerEnd>(&update)) {
    PartAnswer answer = {.part = i, .text = {}, .sources = {}, .seconds = end->seconds};
    seconds_ += end->seconds;
    if (!long_documents::is_none(answer_)) answer.text = std::move(answer_);
    answer_.clear();
    const std::string text = part_text(i);
    const size_t begin = plan_.parts[i].begin;
    for (const CitedPassage& source : end->sources) {
      answer.sources.push_back({begin + byte_of(text, source.begin),
                                begin + byte_of(text, source.end), source.attention});
    }
    answers_.push_back(std::move(answer));
  } else if (const auto* progress = std::get_if<PromptProgress>(&update)) {
    int64_t n_before = 0;
    for (size_t k = 0; k < i; ++k) n_before += plan_.parts[k].n_tokens;
    const auto n_now =
        static_cast<int64_t>(progress->fraction * static_cast<double>(plan_.parts[i].n_tokens));
    PromptProgress all;
    all.n_total = plan_.n_document;
    all.fraction = static_cast<double>(n_before + n_now) /
                   static_cast<double>(std::max<int64_t>(plan_.n_document, 1));
    all.seconds = seconds_ + progress->seconds;
    return all;
  }
  return std::nullopt;
}

Condensed LongReading::condensed() const {
  if (plan_.way != Way::parts) return long_documents::condense(document(), plan_);
  return long_documents::condense_to_fit(
      document(), plan_, answers_, /*in_chat=*/true, room_.n_once,
      [this](std::string_view text) { return count(text); },
      [this](const Condensed& condensed) { return excess_of(condensed); });
}

void LongReading::finish(Request& request) const {
  const Condensed condensed = this->condensed();
  request.prompt = prompt_with(condensed.text);
  std::vector<CitableText> passages;
  for (const CitableText& citable : request.citable) {
    for (const long_documents::Excerpt& each : condensed.excerpts) {
      const std::string excerpt = document_.substr(each.document_begin, each.n_bytes);
      const size_t at = citable.text.find(excerpt);
      if (at == std::string::npos) continue;
      passages.push_back(
          {citable.index, excerpt, citable.begin + count_characters(citable.text.substr(0, at))});
    }
  }
  request.citable = std::move(passages);
}

Json LongReading::report() const {
  return long_documents::long_json(document(), plan_, answers_, condensed());
}

}  // namespace snapkv::server
