// SPDX-License-Identifier: MIT
// The command `serve`: its start, its end by signals, and settings that cannot work. tests/server
// tests its answers.
#include <gtest/gtest.h>

#include "run_process.h"

namespace snapkv::test {
namespace serve_tests {

Command serve(std::vector<std::string> more) {
  Command command;
  command.args = {"serve", "-m", needle_model(), "--port", "0"};
  command.args.insert(command.args.end(), more.begin(), more.end());
  command.interrupt_when = [](const std::string&, const std::string& err) {
    return err.find("ready: ") != std::string::npos;
  };
  return command;
}

TEST(Serve, EndsWithASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Command command = serve({"-np", "4", "--kv-memory", "64M"});
    command.signal = signal;
    const Result result = run(command);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find("listening on http://127.0.0.1:"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("the model has no chat template"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("finishing what runs"), std::string::npos) << result.err;
  }
}

TEST(Serve, SaysWhatItsMemoryIsFor) {
  const std::pair<std::vector<std::string>, std::string> kLines[] = {
      {{},
       "64.0 MiB for caches, of which 8.0 MiB (--prefix-cache) may keep what prompts begin with"},
      {{"--prefix-cache", "3M"}, "of which 3.0 MiB (--prefix-cache)"},
      {{"--prefix-cache", "0"}, "64.0 MiB for caches\n"},
      {{}, "--body-memory: 128.0 MiB for the bodies of requests; one may have 8.0 MiB"},
      {{"--body-memory", "1G"}, "1.0 GiB for the bodies of requests; one may have 64.0 MiB"},
      {{"--reuse", "append"}, "64.0 MiB for caches\n"}};
  for (const auto& [more, line] : kLines) {
    Command command = serve({"--kv-memory", "64M"});
    command.args.insert(command.args.end(), more.begin(), more.end());
    command.signal = SIGTERM;
    const Result result = run(command);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find(line), std::string::npos) << line << " in\n" << result.err;
  }
}

TEST(Serve, RefusesWhatCannotWork) {
  const std::string text = make_file("keys.txt", "\n");
  const std::pair<std::vector<std::string>, std::vector<std::string>> kWrong[] = {
      {{"--port", "70000"}, {"--port", "70000", "65535"}},
      {{"--host", "not.an.address.invalid"}, {"can't listen on not.an.address.invalid:0"}},
      {{"--tls-cert", "cert.pem"}, {"--tls-key"}},
      {{"--tls-cert", "none.pem", "--tls-key", "none.pem"},
       {"--tls-cert 'none.pem': No such file"}},
      {{"--snapshot-dir", "/none/such"}, {"--snapshot-dir '/none/such'"}},
      {{"--api-key-file", "/none/such"}, {"--api-key-file '/none/such'", "No such file"}},
      {{"--api-key-file", text}, {"has no key in it"}},
      {{"--api-key", ""}, {"--api-key", "empty"}},
      {{"--api-key", " "}, {"--api-key", "empty"}},
      {{"--api-key-file", ""}, {"--api-key-file", "empty"}},
      {{"--tls-cert", "", "--tls-key", ""}, {"--tls-", "empty"}},
      {{"--host", ""}, {"--host", "empty"}},
      {{"--kv-policy", "best"}, {"--kv-policy"}},
      {{"--reuse", "always"}, {"--reuse", "append"}},
      {{"--kv-memory", "16K"}, {"--kv-memory: the shortest request needs ", "there is 16.0 KiB"}},
      {{"--body-memory", "1K"}, {"--body-memory"}},
      {{"--chat-template", "none-such"}, {"none-such"}},
      {{"--kv-budget", "8", "--kv-window", "32"}, {"--kv-window"}},
  };
  for (const auto& [more, parts] : kWrong) {
    Command command = serve(more);
    const Result result = run(command);
    EXPECT_NE(result.code, 0) << more.front();
    for (const std::string& part : parts) {
      EXPECT_NE(result.err.find(part), std::string::npos) << part << " in\n" << result.err;
    }
  }
  Command no_model;
  no_model.args = {"serve"};
  EXPECT_EQ(run(no_model).code, 2);
}

TEST(Serve, RefusesAKeyOfAnEmptyVariable) {
  const std::string keys = make_file("one_key.txt", "sesame\n");
  for (const char* name :
       {"SNAPKV_API_KEY", "SNAPKV_API_KEY_FILE", "SNAPKV_TLS_CERT", "SNAPKV_TLS_KEY"}) {
    Command command = serve({});
    command.env[name] = "";
    const Result result = run(command);
    EXPECT_EQ(result.code, 2) << name << " " << result.err;
    EXPECT_NE(result.err.find(std::string(name) + " is set, but empty"), std::string::npos)
        << result.err;
  }
  Command with_another = serve({"--api-key-file", keys});
  with_another.env["SNAPKV_API_KEY"] = "";
  with_another.signal = SIGTERM;
  EXPECT_EQ(run(with_another).code, 0);
}

}  // namespace serve_tests
}  // namespace snapkv::test
