// SPDX-License-Identifier: MIT
#include "every_command.h"

#include <fstream>

#include "run_process.h"

namespace snapkv::test {
namespace {

// A folder with the files of LongBench, holding one question.
std::string longbench_folder() {
  const std::string folder = make_folder();
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder + "/" + name) << content << "\n";
  };
  write("dataset2prompt.json", R"({"qasper": "{context}\nQuestion: {input}\nAnswer:"})");
  write("dataset2maxlen.json", R"({"qasper": 4})");
  write("qasper.jsonl",
        R"({"context": "The secret number of Rome is 48213. A grey fox sat by the old mill.", )"
        R"("input": "What is the secret number of Rome?", "answers": ["48213"], "length": 20, )"
        R"("dataset": "qasper", "language": "en", "all_classes": null, "_id": "a"})");
  return folder;
}

// A file with one question and its context.
std::string question_file() {
  return make_file(
      "questions.jsonl",
      R"({"id": "a", "context": "The secret number of Rome is 48213. A fox sat by the mill.", )"
      R"("question": "What is the secret number of Rome?", "answers": ["48213"]})");
}

// A record file with one prompt answered by two configurations.
std::string two_records() {
  const auto record = [](const std::string& policy, int score) {
    return R"({"key":")" + policy + R"(","id":"a","model":"m.gguf","configuration":{"policy":")" +
           policy + R"("},"score":)" + std::to_string(score) + "}\n";
  };
  return make_file("records.jsonl", record("full", 1) + record("snapkv", 0));
}

}  // namespace

std::vector<EveryCommand> every_command(const std::string& model) {
  const std::string folder = make_folder(), prompt = rome_prompt(12);
  const std::string text = make_file("text.txt", rome_prompt(30));
  std::vector<EveryCommand> all;
  const auto add = [&](const std::string& name, std::vector<std::string> more, bool computes = true,
                       bool has_model = true) {
    EveryCommand command;
    command.name = name;
    command.computes = computes;
    if (name.starts_with("eval ")) {
      command.args = {"eval", name.substr(5)};
    } else {
      command.args = {name};
    }
    if (command.args.size() > 1 && computes) {
      command.records = folder + "/" + name.substr(5) + ".jsonl";
      more.insert(more.end(), {"--out", command.records});
    }
    if (has_model) command.args.insert(command.args.end(), {"-m", model});
    command.args.insert(command.args.end(), more.begin(), more.end());
    all.push_back(command);
  };
  add("generate", {"-p", prompt, "-n", "4", "--temp", "0", "--kv-budget", "64"});
  add("run", {model, prompt, "-n", "4", "--temp", "0", "--kv-budget", "64"}, true, false);
  add("models", {}, false, false);
  add("compress", {"-f", text, "-o", folder + "/document.kv", "--kv-budget", "64"});
  add("documents", {}, false, false);
  add("chat", {"--chat-template", "chatml", "-n", "4", "--temp", "0"});
  all.back().input = "hello\n";
  add("apply-template",
      {"--chat-template", "chatml", "-f",
       make_file("messages.json", R"([{"role": "user", "content": "hello"}])")},
      false);
  add("info", {"--metadata", "--tensors"}, false);
  add("convert", {model, "-o", folder + "/converted.gguf"}, false, false);
  add("policies", {}, false, false);
  add("completion", {"bash"}, false, false);
  add("manual", {}, false, false);
  add("tokenize", {"-p", prompt}, false);
  add("detokenize", {"-i", "266, 276"}, false);
  add("demo", {"--length", "300"});
  add("explain", {"-p", prompt, "--kv-budget", "64", "--kv-window", "16"});
  add("inspect", {"-p", prompt, "--kv-budget", "64", "--json", folder + "/inspect.json"});
  add("bench", {"-p", "64", "-n", "4", "-r", "1", "--no-warmup", "--no-check", "--no-limits"});
  add("eval needle", {"--lengths", "300", "--depths", "1", "--budgets", "64"});
  add("eval ruler", {"--tasks", "niah_single_1", "--lengths", "700", "--samples", "1"});
  add("eval turns", {"--lengths", "300", "--questions", "2", "--samples", "1", "--budgets", "64"});
  add("eval fidelity", {"--text", text, "--lengths", "200", "--n-continue", "4"});
  add("eval longbench", {"--data", longbench_folder(), "--max-length", "200"});
  add("eval qa", {"--data", question_file(), "--chat", "--chat-template", "chatml"});
  add("eval summary", {"--text", text, "--n-predict", "8", "--budgets", "64"});
  add("eval quality", {"--data", question_file(), "--budgets", "64"});
  add("eval make-qa", {"--texts", text, "-o", folder + "/questions.jsonl"}, false);
  add("eval overlap", {"--length", "200", "--samples", "1", "--windows", "2", "--window-length",
                       "16", "--gen-windows", "1", "--question-window", "16"});
  add("eval compare", {two_records(), "--base", "policy=full"}, false, false);
  return all;
}

}  // namespace snapkv::test
