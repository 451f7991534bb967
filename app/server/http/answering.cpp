// SPDX-License-Identifier: MIT
#include "server/http/answering.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/timer.h"
#include "server/api/long_reading.h"
#include "server/http/body.h"
#include "server/http/connection.h"

namespace snapkv::server {
namespace {

// Time between two checks whether the client is still there.
constexpr std::chrono::milliseconds kWait(100), kShortWait(5);

/// An exchange while it is computed, with a generation for each prompt.
class Running {
 public:
  Running(Exchange exchange, BodyMemory::Share share, const AnsweringContext& context,
          std::string title)
      : share_(std::move(share)),
        answers_(std::move(exchange.answers)),
        context_(context),
        title_(std::move(title)),
        reports_progress_(exchange.request.reports_progress),
        since_token_(answers_->options().n),
        has_token_(since_token_.size(), false) {
    ++context_.n_active;
    if (context_.log.shows_progress()) exchange.request.reports_progress = true;
    try {
      if (exchange.request.long_reading != nullptr) {
        long_request_ = std::move(exchange.request);
        submit_next();
        return;
      }
      const int n = exchange.request.n;  // of each prompt
      prompts_.push_back({context_.engine.submit(std::move(exchange.request)), 0, n});
      for (Request& other : exchange.others) {
        const size_t first = prompts_.back().first_choice + n;
        prompts_.push_back({context_.engine.submit(std::move(other)), first, n});
      }
    } catch (...) {
      cancel();
      --context_.n_active;
      throw;
    }
  }
  ~Running() {
    if (!done()) cancel();
    write_log();
    --context_.n_active;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Returns the text to send next; empty when there is none yet.
  std::string next() {
    std::string text;
    if (part_ != nullptr) {
      read_part(text);
      return text;
    }
    for (Prompt& prompt : prompts_) {
      // with several prompts, each must be checked often enough
      auto wait = prompts_.size() > 1 ? kShortWait : kWait;
      while (!done() && prompt.n_open > 0) {
        std::optional<Update> update = prompt.updates->next(wait);
        if (!update) break;
        wait = std::chrono::milliseconds(0);  // and take the updates that came with it
        take(prompt, *update, text);
      }
    }
    return text;
  }

  bool done() const { return failure_.has_value() || answers_->complete(); }
  const std::optional<ApiError>& failure() const { return failure_; }
  Answers& answers() { return *answers_; }
  double ping_seconds() const { return context_.ping_seconds; }

 private:
  struct Prompt {
    std::shared_ptr<RequestUpdates> updates;
    size_t first_choice;
    int n_open;  // open choices
  };

  void cancel() {
    if (part_ != nullptr) part_->cancel();
    for (const Prompt& prompt : prompts_) prompt.updates->cancel();
  }

  /// Submits the request for the next part of a long document, or the one that answers.
  void submit_next() {
    LongReading& reading = *long_request_.long_reading;
    part_ = nullptr;
    if (std::optional<Request> part = reading.next(long_request_)) {
      part_ = context_.engine.submit(std::move(*part));
      return;
    }
    reading.finish(long_request_);
    answers_->set_long_report(reading.report());
    const int n = long_request_.n;
    prompts_.push_back({context_.engine.submit(std::move(long_request_)), 0, n});
  }

  /// Takes the updates of the part that is being read.
  void read_part(std::string& text) {
    try {
      auto wait = kWait;
      while (std::optional<Update> update = part_->next(wait)) {
        wait = std::chrono::milliseconds(0);
        if (const auto* failure = std::get_if<Failure>(&*update)) {
          failure_.emplace(api_error(*failure));
          return;
        }
        if (std::holds_alternative<PromptRead>(*update)) text += answers_->take(*update);
        if (const auto progress = long_request_.long_reading->take(*update)) {
          take_progress(*progress, text);
        }
        if (!std::holds_alternative<AnswerEnd>(*update)) continue;
        submit_next();
        return;
      }
    } catch (...) {  // as in take()
      failure_.emplace(current_error());
      cancel();
    }
  }

  /// A plain answer that fails is an error's, whose line is written with its status.
  void write_log() const {
    const bool is_plain_error = !answers_->options().stream && !answers_->complete();
    if (is_plain_error) return;
    std::string reason = answers_->finish_reasons();
    if (failure_) {
      reason = failure_->what();
    } else if (!answers_->complete()) {
      reason = "the connection has ended";
    }
    context_.log.answered(title_, answers_->times(), answers_->n_rows(), age_.seconds(), reason);
  }

  void take(Prompt& prompt, Update& update, std::string& text) {
    if (const auto* progress = std::get_if<PromptProgress>(&update)) {
      take_progress(*progress, text);
      return;
    }
    if (const auto* failure = std::get_if<Failure>(&update)) {
      failure_.emplace(api_error(*failure));
      cancel();
      return;
    }
    if (auto* part = std::get_if<AnswerPart>(&update)) part->choice += prompt.first_choice;
    if (auto* end = std::get_if<AnswerEnd>(&update)) {
      end->choice += prompt.first_choice;
      --prompt.n_open;
    }
    try {
      observe(update);
      text += answers_->take(update);
    } catch (...) {  // no exception may escape into the thread of a stream
      failure_.emplace(current_error());
      cancel();
    }
  }

  void take_progress(const PromptProgress& progress, std::string& text) {
    const bool is_due = since_log_.seconds() >= RequestLog::kProgressSeconds;
    if (is_due && progress.fraction < 1) {
      since_log_.lap();
      context_.log.reading(title_, progress);
    }
    if (reports_progress_) text += answers_->take(progress);
  }

  void observe(const Update& update) {
    const auto* part = std::get_if<AnswerPart>(&update);
    if (part == nullptr || part->of_prompt) return;
    const size_t i = part->choice;
    if (has_token_[i]) {
      context_.metrics.observe_token(since_token_[i].lap());
    } else {
      context_.metrics.observe_first_token(since_token_[i].lap());
      has_token_[i] = true;
    }
  }

  const BodyMemory::Share share_;
  std::unique_ptr<Answers> answers_;
  const AnsweringContext context_;
  const std::string title_;
  const bool reports_progress_;  // the client wants to know how far its prompt is read
  const Timer age_;
  Timer since_log_;
  std::vector<Prompt> prompts_;
  Request long_request_;                  // that answers, while the parts of its document are read
  std::shared_ptr<RequestUpdates> part_;  // of the part that is being read
  std::optional<ApiError> failure_;
  std::vector<Timer> since_token_;  // of each choice; at first since the request arrived
  std::vector<bool> has_token_;
};

void answer_plain(Running& running, httplib::Response& response) {
  Connection* connection = Connection::current();
  while (!running.done()) {
    if (connection != nullptr) check_client(*connection);
    (void)running.next();
  }
  if (running.failure()) throw ApiError(*running.failure());
  write_json(response, running.answers().plain());
}

/// Sends new text, or a ping; returns false when the client has gone or the server ends, which
/// leaves a stream without its last chunk.
bool send_next(Running& running, Timer& since_sent, httplib::DataSink& sink) {
  std::string text = running.next();
  if (running.failure()) text += running.answers().failed(*running.failure());
  Connection* connection = Connection::current();
  if (connection != nullptr && connection->ending() && !running.done()) {
    text += running.answers().failed(server_ends());
    sink.write(text.data(), text.size());
    connection->close_after_answer();
    return false;
  }
  if (text.empty() && (since_sent.seconds() >= running.ping_seconds() ||
                       (connection != nullptr && connection->wants_sign()))) {
    text = running.answers().ping();
  }
  if (!text.empty()) {
    since_sent.lap();
    if (!sink.write(text.data(), text.size())) return false;
  }
  if (running.done()) {
    sink.done();
    return true;
  }
  return sink.is_writable();  // if not writable, Running's destructor cancels
}

/// `in_chunks`: HTTP/1.0 has none; there the end of the connection is that of the stream.
void answer_stream(std::shared_ptr<Running> running, bool in_chunks, httplib::Response& response) {
  response.status = 200;
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");  // so that proxies do not hold tokens back
  auto since_sent = std::make_shared<Timer>();
  const auto provide = [running, since_sent](size_t, httplib::DataSink& sink) {
    return send_next(*running, *since_sent, sink);
  };
  if (in_chunks) {
    response.set_chunked_content_provider(running->answers().stream_type(), provide);
    return;
  }
  if (Connection* connection = Connection::current()) connection->close_after_answer();
  response.set_content_provider(running->answers().stream_type(), provide);
}

}  // namespace

std::string log_title(const httplib::Request& request) {
  return RequestLog::title(request.method, request.path, request.get_header_value("User-Agent"));
}

void answer(Exchange exchange, BodyMemory::Share share, const httplib::Request& request,
            httplib::Response& response, const AnsweringContext& context) {
  write_warnings(response, exchange.answers->options().warnings);
  const std::string title = log_title(request);
  context.log.changes(title, exchange.answers->options().notes);
  context.log.changes(title, exchange.answers->options().warnings);
  const bool stream = exchange.answers->options().stream;
  auto running = std::make_shared<Running>(std::move(exchange), std::move(share), context, title);
  if (stream) {
    answer_stream(std::move(running), request.version != "HTTP/1.0", response);
  } else {
    answer_plain(*running, response);
  }
}

}  // namespace snapkv::server
