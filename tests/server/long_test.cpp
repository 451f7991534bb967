// SPDX-License-Identifier: MIT
// The field `long`: documents that are longer than the context.
#include <atomic>
#include <string>

#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

/// A text of about 3000 tokens, with one sentence about Rome.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 150; ++i) {
    text += i == 100
                ? "The secret number of Rome is 48213.\n\n"
                : "The cold wind blew from the sea, and the baker slept. The boat was slow.\n\n";
  }
  return text;
}

std::string chat_body(const std::string& question, const std::string& more) {
  Json body = Json::parse("{" + more + "}");
  body["messages"] = Json::parse(R"([{"role": "system", "content": "Be brief."}])");
  body["messages"].push_back({{"role", "user"}, {"content", long_text() + question}});
  return to_text(body);
}

class LongHttp : public Http {
 protected:
  LongHttp() {
    api_.session.n_ctx = 1000;
    engine_.set_script([this](const Request& request, RequestUpdates& updates) {
      PromptRead read;
      read.n_tokens = std::ssize(request.prompt.tokens);
      read.kv.policy = "snapkv";
      const std::string& prompt = request.prompt.chat.text;
      const bool is_part = prompt.find("This was part") != std::string::npos;
      if (request.reports_progress) {
        updates.push(PromptProgress{.n_total = read.n_tokens, .fraction = 0.5, .seconds = 1});
      }
      const bool has_it = prompt.find("48213") != std::string::npos;
      if (is_part && has_it && fails_) {
        updates.push(Failure{Failure::Kind::does_not_fit, "no room"});
        return;
      }
      updates.push(std::move(read));
      const std::string text = has_it ? "It is 48213." : "NONE.";
      updates.push(AnswerPart{.choice = 0, .text = text, .tokens = {}, .n_tokens = 5});
      for (int i = 1; i < request.n; ++i) {
        updates.push(AnswerPart{.choice = 1, .text = text, .tokens = {}, .n_tokens = 5});
        AnswerEnd other;
        other.choice = 1;
        other.n_generated = 5;
        updates.push(other);
      }
      AnswerEnd end;
      end.n_generated = 5;
      for (const CitableText& each : request.citable) {
        const size_t at = each.text.find("The secret number of Rome is 48213.");
        if (at == std::string::npos) continue;
        const auto begin = each.begin + static_cast<int64_t>(at);
        end.sources.push_back(
            {each.index, begin, begin + 35, 0.5, "The secret number of Rome is 48213."});
      }
      updates.push(std::move(end));
    });
  }
  std::atomic<bool> fails_ = false;
};

TEST_F(LongHttp, PartsAreAnsweredBeforeTheDocument) {
  start();
  const auto answered =
      post("/v1/chat/completions",
           chat_body("What is the number?", R"("long": "parts", "kv_report": "sources", "n": 2)"));
  ASSERT_EQ(answered->status, 200) << answered->body;
  const Json json = Json::parse(answered->body);
  ASSERT_TRUE(json["kv"].contains("long")) << json;
  const Json found = json["kv"]["long"];
  EXPECT_EQ(found["way"], "parts");
  const size_t n_parts = found["parts"].size();
  ASSERT_GE(n_parts, 3U) << found;
  const std::vector<Request> requests = engine_.requests();
  ASSERT_EQ(requests.size(), n_parts + 1);
  size_t n_answers = 0, end = 0;
  for (size_t i = 0; i < n_parts; ++i) {
    const Request& part = requests[i];
    EXPECT_LE(std::ssize(part.prompt.tokens), 1000);
    EXPECT_EQ(part.n, 1);
    EXPECT_EQ(part.sampler.temperature, 0);
    EXPECT_NE(part.prompt.chat.text.find("Be brief."), std::string::npos);
    EXPECT_EQ(found["parts"][i]["begin"], end) << "a gap";
    end = found["parts"][i]["end"];
    if (!found["parts"][i]["answer"].is_null()) ++n_answers;
  }
  EXPECT_EQ(end + 2, long_text().size()) << "but for the empty line before the question";
  EXPECT_EQ(n_answers, 1U);
  const Request& last = requests.back();
  EXPECT_EQ(last.n, 2);
  EXPECT_LE(std::ssize(last.prompt.tokens), 1000);
  const std::string& prompt = last.prompt.chat.text;
  EXPECT_NE(prompt.find("The secret number of Rome is 48213."), std::string::npos) << prompt;
  EXPECT_NE(prompt.find("It is 48213."), std::string::npos) << "the part's answer";
  EXPECT_NE(prompt.find("What is the number?"), std::string::npos);
  EXPECT_EQ(prompt.find("NONE"), std::string::npos);
  // sources are characters of the client's own message
  const Json source = json["kv"]["sources"][0];
  EXPECT_EQ(source["message"], 1);
  EXPECT_EQ(source["begin"], long_text().find("The secret number"));
  EXPECT_GT(json["usage"]["prompt_tokens"], std::ssize(last.prompt.tokens)) << "the parts' too";
}

TEST_F(LongHttp, RareWordsNeedOneRequest) {
  start();
  const auto answered =
      post("/v1/chat/completions", chat_body("What is Rome's number?", R"("long": "auto")"));
  const Json found = Json::parse(answered->body)["kv"]["long"];
  EXPECT_EQ(found["way"], "passages");
  EXPECT_EQ(found["words"], Json::parse(R"(["Rome's", "number"])"));
  ASSERT_EQ(engine_.requests().size(), 1U);
  EXPECT_NE(engine_.requests()[0].prompt.chat.text.find("48213"), std::string::npos);
  (void)post("/v1/chat/completions", chat_body("What is Rome's number?", R"("long": "first")"));
  const std::string prompt = engine_.requests()[1].prompt.chat.text;
  EXPECT_EQ(prompt.find("48213"), std::string::npos);
  EXPECT_NE(prompt.find("The cold wind"), std::string::npos);
}

TEST_F(LongHttp, StreamsShowHowFarAllPartsAre) {
  start();
  const std::string events =
      post("/v1/chat/completions",
           chat_body("What is it about?",
                     R"("long": "auto", "stream": true, "return_progress": true)"))
          ->body;
  double before = -1;
  size_t n = 0;
  for (size_t at = events.find("\"prompt_progress\""); at != std::string::npos;
       at = events.find("\"prompt_progress\"", at + 1)) {
    const size_t begin = events.find('{', at);
    const Json progress = Json::parse(events.substr(begin, events.find('}', begin) + 1 - begin));
    const double done = progress["processed"];
    const bool is_of_a_part = n + 1 < engine_.requests().size();
    EXPECT_TRUE(!is_of_a_part || done > before) << events;
    before = done;
    ++n;
  }
  EXPECT_EQ(n, engine_.requests().size());
  EXPECT_GE(n, 4U);
  EXPECT_NE(events.find("\"long\""), std::string::npos) << "in the last chunk";
  EXPECT_NE(events.find("[DONE]"), std::string::npos);
}

TEST_F(LongHttp, AnthropicsDocumentsAreCitedStill) {
  start();
  Json body = Json::parse(R"({"max_tokens": 20, "long": "auto", "messages": [
      {"role": "user", "content": [
        {"type": "document", "citations": {"enabled": true},
         "source": {"type": "text", "media_type": "text/plain", "data": ""}},
        {"type": "text", "text": "What is Rome's number?"}]}]})");
  body["messages"][0]["content"][0]["source"]["data"] = long_text();
  const auto answered = post("/v1/messages", to_text(body));
  ASSERT_EQ(answered->status, 200) << answered->body;
  const Json citations = Json::parse(answered->body)["content"][0]["citations"];
  ASSERT_EQ(citations.size(), 1U) << answered->body;
  EXPECT_EQ(citations[0]["start_char_index"], long_text().find("The secret number"));
}

TEST_F(LongHttp, AFailingPartEndsTheRequest) {
  start();
  fails_ = true;
  const auto failed =
      post("/v1/chat/completions", chat_body("What is the number?", R"("long": "parts")"));
  EXPECT_EQ(failed->status, 503) << failed->body;
  EXPECT_NE(failed->body.find("no room"), std::string::npos) << failed->body;
}

TEST_F(LongHttp, OnlyWhatNeedsItIsChanged) {
  api_.snapshot_dir = testing::TempDir();
  start();
  const std::string shortened =
      R"({"long": "auto", "messages": [{"role": "user", "content": "A text.\n\nWhat is it about?"}]})";
  EXPECT_FALSE(Json::parse(post("/v1/chat/completions", shortened)->body)["kv"].contains("long"));
  // refuse is the default
  (void)post("/v1/chat/completions", chat_body("What is Rome's number?", ""));
  EXPECT_GT(std::ssize(engine_.requests().back().prompt.tokens), 1000);
  const auto other = post("/v1/chat/completions", chat_body("Why?", R"("long": "some")"));
  EXPECT_EQ(other->status, 400);
  EXPECT_NE(other->body.find("auto, first, parts or refuse"), std::string::npos) << other->body;
  const auto completion = post("/v1/completions", R"({"long": "parts", "prompt": "x"})");
  EXPECT_EQ(completion->status, 400);
  EXPECT_NE(completion->body.find("'long'"), std::string::npos) << completion->body;
  const auto stored = post("/v1/kv/snapshots", R"({"long": "first", "name": "a", "text": "b"})");
  EXPECT_EQ(stored->status, 400);
  EXPECT_NE(stored->body.find("'long'"), std::string::npos) << stored->body;
}

}  // namespace
}  // namespace snapkv::test
