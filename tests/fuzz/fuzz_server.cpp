// SPDX-License-Identifier: MIT
// The fuzz target for the server's requests and answers, without HTTP: libFuzzer's entry point
// (preset `fuzz`), also linked into tests/server, which replays corpus_server/ and mutations of it.
#include "tests/fuzz/fuzz_server.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "chat/call_syntax.h"
#include "chat/tools.h"
#include "server/api/api_error.h"
#include "server/api/endpoints.h"
#include "server/api/exchange.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {
namespace {

using namespace server;
using chat::ToolFormat;

/// An engine that has a model but computes nothing.
class IdleEngine : public RequestEngine {
 public:
  const Model& model() const override { return *model_; }
  const SchedulerOptions& options() const override { return options_; }
  std::shared_ptr<RequestUpdates> submit(Request) override { return nullptr; }
  PromptFit fit(Request) const override { return {}; }
  std::shared_ptr<RequestUpdates> make_snapshot(Request, const std::string&,
                                                const std::string&) override {
    return nullptr;
  }
  DocumentStore& documents() override { return documents_; }
  void drain() override {}
  bool draining() const override { return false; }
  bool idle() const override { return true; }
  std::vector<SlotInfo> slots() const override { return {}; }
  void save_slot(int64_t, const std::string&) override {}
  int64_t restore_slot(const std::string&) override { return 0; }
  void erase_slot(int64_t) override {}
  SchedulerStats stats() const override { return {}; }

 private:
  std::shared_ptr<const Model> model_ =
      Model::load({.path = SNAPKV_SOURCE_DIR "/models/needle.gguf", .n_threads = 1});
  DocumentStore documents_{model_};
  SchedulerOptions options_;
};

ApiOptions api_options() {
  ApiOptions options;
  options.model_name = "needle";
  options.policy = [](const std::string& name) {
    PolicyConfig config;
    config.name = name;
    validate(config);
    return config;
  };
  options.chat_template = ChatTemplate::built_in("chatml");
  options.tool_template = ChatTemplate::parse(
      "{% for tool in tools %}<tool_call>{{ tool | tojson }}{% endfor %}{% for message in messages "
      "%}{{ message.role }}: {{ message.content }}{% for call in message.tool_calls or [] %}"
      "{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}{% endfor %}",
      "tools");
  return options;
}

std::string to_utf8(std::string_view text) {
  return Json::parse(to_text(Json(std::string(text)))).get<std::string>();
}

// Checks that every event of a stream is JSON, except the final one.
void check_events(const std::string& events) {
  for (size_t begin = 0; begin < events.size();) {
    const size_t end = events.find('\n', begin);
    SNAPKV_CHECK(end != std::string::npos);
    const std::string_view line = std::string_view(events).substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("data: ") && line != "data: [DONE]") {
      SNAPKV_CHECK(Json::accept(line.substr(6)));
    }
  }
}

// The answers to a request; the text of each choice is `text`, in two parts.
std::string answer(Exchange exchange, std::string_view text) {
  Answers& answers = *exchange.answers;
  const bool stream = answers.options().stream;
  const size_t n = answers.options().n;
  size_t n_requested = exchange.request.n;
  for (const Request& other : exchange.others) n_requested += other.n;
  SNAPKV_CHECK(n >= 1 && n == n_requested && !exchange.request.prompt.tokens.empty());
  const std::string whole = to_utf8(text);
  std::string events = answers.take(PromptProgress{10, 4, 0.5, 0.25});
  PromptRead read;
  read.n_tokens = 10;
  read.kv = {"snapkv", 10, 8, 1000, 800, 0.25, 4, {}};
  events += answers.take(read);
  for (size_t choice = 0; choice < n; ++choice) {
    for (const std::string& part :
         {whole.substr(0, whole.size() / 2), whole.substr(whole.size() / 2)}) {
      AnswerPart update{choice, part, {}};
      if (answers.options().has_logprobs) {
        const TokenProbability token{5, std::string(text.substr(0, 3)), -0.5};
        update.tokens.push_back({token, {token, token}});
      }
      events += answers.take(update);
    }
    SNAPKV_CHECK(!answers.complete());
    events += answers.take(AnswerEnd{choice, FinishReason::stop, "", 3, 1.5});
  }
  SNAPKV_CHECK(answers.complete());
  if (!stream) return to_text(answers.plain());
  check_events(events);
  return events;
}

std::string serve(char endpoint, const Json& body, std::string_view text) {
  static IdleEngine engine;
  static const ApiOptions options = api_options();
  const ApiContext context{engine, options};
  switch (endpoint) {
    case 'c':
      return answer(read_chat_completion(body, context), text);
    case 'p':
      return answer(read_completion(body, context), text);
    case 'r':
      return answer(read_response(body, context), text);
    case 'm':
      return answer(read_messages(body, context), text);
    case 'n':
      return std::to_string(count_message_tokens(body, context));
    case 't':
      return tokenize(body, context);
    case 'd':
      return to_text(detokenize(body, context));
    case 'a':
      return to_text(apply_template(body, context));
    case 's':
      return read_snapshot_request(body, context).notes;
    default:
      return "";
  }
}

// The pieces of an answer; consecutive pieces of the same kind are joined.
std::vector<Piece> parse(const AnswerSyntax& syntax, std::string_view text, size_t n_bytes) {
  AnswerParser parser(syntax);
  std::vector<Piece> all;
  const auto take = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      if (!all.empty() && all.back().kind == piece.kind && piece.kind != Piece::Kind::tool_begin) {
        all.back().text += piece.text;
      } else {
        all.push_back(piece);
      }
    }
  };
  for (size_t at = 0; at < text.size(); at += n_bytes) take(parser.push(text.substr(at, n_bytes)));
  take(parser.finish());
  return all;
}

std::string parse_hostile_answer(std::string_view bytes) {
  if (bytes.size() < 2) return "";
  const auto formats = chat::call_syntaxes();
  const size_t format = static_cast<unsigned char>(bytes[1]) % (formats.size() + 1);
  AnswerSyntax syntax;
  syntax.has_reasoning = (bytes[0] & 1) != 0;
  syntax.prompt_end = (bytes[0] & 2) != 0 ? "<think>\n" : "";
  syntax.tools = format < formats.size() ? formats[format].format : ToolFormat::none;
  syntax.any_form = (bytes[0] & 64) != 0;
  syntax.functions = {
      {"get", Json::parse(R"({"type": "object", "properties": {"city": {"type": "string"},
                              "days": {"type": "integer"}, "any": {}}})")},
      {"set", Json::object()}};
  const std::string text = to_utf8(bytes.substr(2));
  const std::vector<Piece> whole = parse(syntax, text, std::max<size_t>(text.size(), 1));
  const auto same = [](const Piece& a, const Piece& b) {
    return a.kind == b.kind && a.text == b.text;
  };
  for (const size_t n_bytes : {1, 7}) {
    const std::vector<Piece> cut = parse(syntax, text, n_bytes);
    SNAPKV_CHECK(std::ranges::equal(whole, cut, same));
  }
  std::string all;
  for (const Piece& piece : whole) all += piece.text;
  return all;
}

}  // namespace

std::string serve_hostile(std::string_view bytes) {
  if (bytes.empty()) return "";
  if (bytes[0] == 'w') return parse_hostile_answer(bytes.substr(1));
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  try {
    const Json body = parse_body(bytes.substr(1, end - 1));
    const std::string text = serve(bytes[0], body, bytes.substr(std::min(end + 1, bytes.size())));
    return text;
  } catch (const ApiError& e) {
    SNAPKV_CHECK(e.status >= 400 && e.status < 500);
    SNAPKV_CHECK(Json::accept(to_text(openai_error(e))));
  } catch (const Error& e) {
    const ApiError error = api_error(e);
    SNAPKV_CHECK(error.status >= 400 && error.status < 500);
  }
  return "";
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::serve_hostile({reinterpret_cast<const char*>(data), size});
  return 0;
}
