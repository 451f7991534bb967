// SPDX-License-Identifier: MIT
// snapkv run and snapkv models: models by their names in the stores of other programs, documents
// and a question, and a chat at a terminal. Commands that are not there.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "chat_support.h"
#include "documents/sample_documents.h"
#include "run_process.h"
#include "terminal_session.h"

namespace snapkv::test {
namespace run_tests {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void add_model(const fs::path& path) {
  fs::create_directories(path.parent_path());
  fs::create_symlink(needle_model(), path);
}

void add_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  fs::copy_file(make_file("text", text), path);
}

/// A home with a model in each store.
std::map<std::string, std::string> home_with_models() {
  const fs::path home = make_folder();
  const fs::path hub = home / ".cache/huggingface/hub/models--Acme--Needle-GGUF";
  add_text(hub / "refs/main", "0123abcd");
  add_model(hub / "snapshots/0123abcd/needle-q8.gguf");
  add_model(hub / "snapshots/0123abcd/mmproj-needle.gguf");
  add_model(home / ".ollama/models/blobs/sha256-77");
  add_text(home / ".ollama/models/manifests/registry.ollama.ai/library/nadel/latest",
           R"({"layers": [{"mediaType": "application/vnd.ollama.image.model",
                           "digest": "sha256:77"}]})");
  add_text(home / ".ollama/models/manifests/registry.ollama.ai/library/broken/latest", "{");
  add_model(home / ".lmstudio/models/acme/aiguille-GGUF/aiguille.Q8_0.gguf");
  add_model(home / ".cache/snapkv/models/ago.gguf");
  add_text(home / ".cache/snapkv/models/damaged.gguf", "GGUF");
  return {{"HOME", home.string()}};
}

Result run_with(const std::map<std::string, std::string>& env, std::vector<std::string> args,
                const std::string& input = "") {
  Command command;
  command.args = std::move(args);
  command.env = env;
  command.input = input;
  return run(command);
}

TEST(Models, ListsWhatIsInTheStores) {
  const Result r = run_with(home_with_models(), {"models", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  std::map<std::string, Json> models;
  for (const Json& model : Json::parse(r.out)) models[model.at("name")] = model;
  const std::pair<const char*, const char*> kExpected[] = {
      {"Acme/Needle-GGUF/needle-q8", "Hugging Face"},
      {"nadel:latest", "ollama"},
      {"acme/aiguille-GGUF/aiguille.Q8_0", "LM Studio"},
      {"ago", "snapkv"}};
  for (const auto& [name, source] : kExpected) {
    ASSERT_EQ(models.count(name), 1u) << name << r.out;
    EXPECT_EQ(models[name].at("source"), source);
    EXPECT_EQ(models[name].at("context"), 8192);
    EXPECT_EQ(models[name].at("longest_prompt"), 8192);
    EXPECT_EQ(models[name].at("problem"), nullptr);
  }
  EXPECT_TRUE(models["damaged"].at("problem").is_string());
  EXPECT_EQ(r.out.find("mmproj"), std::string::npos);
  const Result table = run_with(home_with_models(), {"models"});
  for (const char* part :
       {"nadel:latest", "8192", "whole context", "can't run", "snapkv run NAME"}) {
    EXPECT_TRUE(has_text(table.out, part)) << part << " in\n" << table.out;
  }
}

TEST(Run, FindsModelsByTheirNames) {
  const auto home = home_with_models();
  for (const char* name : {"nadel", "nadel:latest", "Aiguille.q8_0", "acme/needle-gguf/needle-q8",
                           "needle-q8.gguf", "ago", "aiguille"}) {
    const Result r = run_with(home, {"run", name, rome_prompt(4), "-n", "7", "--temp", "0"});
    EXPECT_EQ(r.out, " 48213.\n") << name << r.err;
  }
  const auto refuses = [&](const std::string& name, std::vector<std::string> parts) {
    const Result r = run_with(home, {"run", name, "What?"});
    EXPECT_EQ(r.code, 2) << r.err;
    for (const std::string& part : parts) EXPECT_TRUE(has_text(r.err, part)) << part << r.err;
  };
  refuses("acme", {"may be any of 2 models", "Acme/Needle-GGUF/needle-q8 (Hugging Face)"});
  // a copy in another store is the same model
  add_model(home.at("HOME") + "/.cache/snapkv/models/aiguille.Q8_0.gguf");
  EXPECT_EQ(run_with(home, {"run", "aiguille", rome_prompt(4), "-n", "7", "--temp", "0"}).out,
            " 48213.\n");
  refuses("nadle:latest",
          {"no model 'nadle:latest'", "did you mean nadel:latest?", "snapkv models"});
  const std::string folder = make_folder();
  refuses(folder, {"a folder with no model"});
  add_model(folder + "/one.gguf");
  EXPECT_EQ(run_with(home, {"run", folder, rome_prompt(4), "-n", "7", "--temp", "0"}).out,
            " 48213.\n");
}

TEST(Models, WithoutAHomeTheCurrentFolderIsNone) {
  Command command;
  command.shell = "unset HOME";
  command.args = {"models"};
  const Result list = run(command);
  EXPECT_EQ(list.code, 0) << list.err;
  for (const char* folder : {"\n  .cache", "\n  .ollama", "\n  .lmstudio", "\n  /models/real"}) {
    EXPECT_FALSE(has_text(list.out, folder)) << list.out;
  }
  command.env = {{"HF_ENDPOINT", "http://127.0.0.1:1"}};
  command.args = {"pull", "acme/needle"};
  const Result pull = run(command);
  EXPECT_EQ(pull.code, 2);
  EXPECT_TRUE(has_text(pull.err, "neither HOME nor XDG_CACHE_HOME is set")) << pull.err;
}

TEST(Models, OtherCommandsTakeTheirNamesToo) {
  const auto home = home_with_models();
  const auto answer = [&](const std::vector<std::string>& words) {
    std::vector<std::string> args = {"generate", "-p", rome_prompt(4), "-n", "7", "--temp", "0"};
    args.insert(args.end(), words.begin(), words.end());
    return run_with(home, args).out;
  };
  EXPECT_EQ(answer({"-m", "nadel"}), " 48213.\n");
  EXPECT_EQ(answer({"ago"}), " 48213.\n");
  EXPECT_EQ(answer({needle_model()}), " 48213.\n");
  EXPECT_EQ(answer({"ago", "--draft-model", "nadel"}), " 48213.\n");

  const Result info = run_with(home, {"info", "acme/needle-gguf/needle-q8", "--json"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_TRUE(has_text(info.out, "needle-q8.gguf")) << info.out;

  auto other = home;
  other["SNAPKV_MODEL"] = "nothing";
  EXPECT_EQ(run_with(other, {"info", "ago"}).code, 0);
  const Result wrong = run_with(other, {"info"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has_text(wrong.err, "no model 'nothing'")) << wrong.err;

  const Result twice = run_with(home, {"info", "-m", "ago", "nadel"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_TRUE(has_text(twice.err, "unexpected argument nadel")) << twice.err;
  const Result path = run_with(home, {"info", "no/such.gguf"});
  EXPECT_EQ(path.code, 1);
  EXPECT_TRUE(has_text(path.err, "cannot open 'no/such.gguf'")) << path.err;
}

TEST(Run, AnswersAboutDocumentsAndWhatIsPipedIn) {
  const std::string facts = read_file(facts_file());
  const std::string pdf = make_file("facts.pdf", make_pdf({facts}));
  const std::string question =
      "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
  const std::vector<std::string> options = {"-n", "7", "--temp", "0"};
  const auto answer = [&](std::vector<std::string> words, const std::string& input) {
    std::vector<std::string> args = {"run", needle_model()};
    args.insert(args.end(), words.begin(), words.end());
    args.insert(args.end(), options.begin(), options.end());
    const Result r = run_with({}, args, input);
    EXPECT_EQ(r.out, " 48213.\n") << r.err;
  };
  answer({pdf, question}, "");
  answer({question}, facts);
  answer({pdf}, question);
  answer({}, facts + "\n\n" + question);
  const Result wrong = run_with({}, {"run", needle_model(), "repport.pdf", "What?"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has_text(wrong.err, "there is no file repport.pdf")) << wrong.err;
  EXPECT_EQ(run_with({}, {"run", needle_model(), "repport.pdf"}).code, 2);
  const Result forgotten = run_with({}, {"run", pdf, question});
  EXPECT_EQ(forgotten.code, 2);
  EXPECT_TRUE(has_text(forgotten.err, "the model comes first: snapkv run MODEL " + pdf))
      << forgotten.err;
  const Result page = run_with({}, {"run", needle_model(), "https://example.org/a?b", "What?"});
  EXPECT_EQ(page.code, 2);
  EXPECT_TRUE(has_text(page.err, "curl -sL 'https://example.org/a?b' | snapkv run MODEL"))
      << page.err;
}

/// A folder with the facts in a document and another document, and what is left out.
std::string folder_of_documents() {
  const fs::path folder = fs::path(make_folder()).lexically_normal();
  add_text(folder / "notes" / "facts.txt", read_file(facts_file()));
  add_text(folder / "other.md", "The cold wind blew from the sea, and the baker slept.\n");
  add_text(folder / ".git" / "config", "hidden");
  add_text(folder / "photo.gif", std::string("GIF89a\1\0\1\0", 10));
  add_text(folder / "empty.txt", "\n");
  return folder.string();
}

TEST(Run, SeveralDocumentsHaveTheirNames) {
  const std::string folder = folder_of_documents();
  const std::string question =
      "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
  const auto ask = [&](const std::vector<std::string>& documents) {
    std::vector<std::string> args = {"run", needle_model()};
    args.insert(args.end(), documents.begin(), documents.end());
    for (const char* word : {question.c_str(), "-n", "7", "--temp", "0", "--cite"}) {
      args.emplace_back(word);
    }
    return run_with({}, args);
  };
  const std::string facts = folder + "/notes/facts.txt";
  const Result one = ask({facts});
  EXPECT_TRUE(one.out.starts_with(" 48213.\n")) << one.out << one.err;
  EXPECT_FALSE(has_text(one.out, facts)) << one.out;
  for (const std::vector<std::string>& documents :
       {std::vector<std::string>{folder + "/other.md", facts}, {folder}, {folder + "/"}}) {
    const Result r = ask(documents);
    EXPECT_TRUE(r.out.starts_with(" 48213.\n")) << r.out << r.err;
    EXPECT_TRUE(has_text(r.out, "/notes/facts.txt: The secret number of Rome is 48213.")) << r.out;
    if (documents.size() > 1) continue;
    EXPECT_TRUE(has_text(
        r.err, ": 2 documents; left out: 1 hidden, 2 without text (empty.txt, photo.gif)\n"))
        << r.err;
  }
  const fs::path bare = make_folder();
  add_text(bare / ".hidden", "x");
  const Result none = ask({bare.string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(
      has_text(none.err, bare.string() + ": a folder without documents; left out: 1 hidden"))
      << none.err;
}

/// "prompt 1234" of the summary.
std::string prompt_length(const std::string& err) {
  const size_t at = err.find("prompt   ");
  return at == std::string::npos ? "" : err.substr(at, err.find(" tokens", at) - at);
}

TEST(Run, ADocumentThatSeveralPathsLeadToIsReadOnce) {
  const std::string folder = folder_of_documents();
  const std::string facts = folder + "/notes/facts.txt", other = folder + "/other.md";
  fs::create_symlink(other, folder + "/same.md");
  const auto ask = [&](std::vector<std::string> documents) {
    documents.insert(documents.begin(), {"run", needle_model()});
    documents.insert(documents.end(), {"Where is Rome?", "-n", "1", "--temp", "0", "--no-store"});
    return run_with({}, documents);
  };
  const Result each = ask({facts, other});
  ASSERT_FALSE(prompt_length(each.err).empty()) << each.err;
  const Result both = ask({facts, folder});
  EXPECT_EQ(prompt_length(both.err), prompt_length(each.err)) << both.err;
  EXPECT_TRUE(has_text(both.err, ": 1 document; left out: 2 read already, 1 hidden, 2 without"))
      << both.err;
  const Result again = ask({folder, other});
  EXPECT_TRUE(has_text(again.err, other + " is read already\n")) << again.err;
  const Result all = ask({facts, other, folder + "/notes"});
  EXPECT_EQ(prompt_length(all.err), prompt_length(each.err)) << all.err;
  EXPECT_EQ(prompt_length(ask({facts, facts}).err), prompt_length(ask({facts}).err));
}

TEST(Run, OtherCommandsReadFoldersToo) {
  const std::string folder = folder_of_documents();
  const std::string question =
      "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
  const std::vector<std::string> options = {"-p", question, "-n", "7", "--temp", "0", "--cite"};
  const auto with_options = [&](std::vector<std::string> args) {
    args.insert(args.end(), options.begin(), options.end());
    return run_with({}, args);
  };
  const Result r = with_options({"generate", needle_model(), "-f", folder});
  EXPECT_TRUE(r.out.starts_with(" 48213.\n")) << r.out << r.err;
  EXPECT_TRUE(has_text(r.out, "/notes/facts.txt: The secret number")) << r.out;
  EXPECT_TRUE(has_text(r.err, ": 2 documents; left out: 1 hidden, 2 without text")) << r.err;
  const std::string stored = make_folder() + "/folder.kv";
  const Result made = run_with({}, {"compress", "-m", needle_model(), "-f", folder, "-o", stored});
  EXPECT_EQ(made.code, 0) << made.err;
  const Result asked = with_options({"ask", stored});
  EXPECT_TRUE(asked.out.starts_with(" 48213.\n")) << asked.out << asked.err;
  EXPECT_TRUE(has_text(asked.out, "/notes/facts.txt: The secret number")) << asked.out;
  const fs::path bare = make_folder();
  const Result none = with_options({"generate", needle_model(), "-f", bare.string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has_text(none.err, bare.string() + ": a folder without documents")) << none.err;
}

TEST(Run, OtherCommandsSayHowTheyReadADocument) {
  const std::string facts = make_file("facts.txt", read_file(facts_file()));
  for (const char* command : {"generate", "inspect", "explain", "chat"}) {
    const Result r = run_with({}, {command, needle_model(), facts});
    EXPECT_EQ(r.code, 2);
    EXPECT_TRUE(has_text(r.err, "unexpected argument " + facts + "; -f " + facts + " reads it\n"))
        << r.err;
  }
  const Result text = run_with({}, {"generate", needle_model(), "What is it?"});
  EXPECT_TRUE(has_text(text.err, "What is it?; -p takes the text of a prompt\n")) << text.err;
  const Result model = run_with({}, {"compress", needle_model(), "-f", facts, "-o", "a.kv"});
  EXPECT_TRUE(has_text(model.err, "; -m " + needle_model() + " names the model\n")) << model.err;
  for (const std::string& path : {facts, fs::path(facts).parent_path().string()}) {
    const Result stored = run_with({}, {"ask", path, "-p", "Where is Rome?"});
    EXPECT_EQ(stored.code, 2);
    EXPECT_TRUE(has_text(stored.err, "; snapkv run MODEL " + path + " \"QUESTION\" asks"))
        << stored.err;
  }
  const Result other = run_with({}, {"info", needle_model(), facts});
  EXPECT_TRUE(has_text(other.err, "unexpected argument " + facts + "\n")) << other.err;
}

TEST(Run, QuestionsMayStandWithoutQuotes) {
  const std::string facts = make_file("facts.txt", read_file(facts_file()));
  const std::vector<std::string> options = {"-n", "7", "--temp", "0"};
  const auto ask = [&](std::vector<std::string> words) {
    std::vector<std::string> args = {"run", needle_model()};
    args.insert(args.end(), words.begin(), words.end());
    args.insert(args.end(), options.begin(), options.end());
    return run_with({}, args);
  };
  const std::string question =
      "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
  const Result whole = ask({facts, question});
  ASSERT_EQ(whole.out, " 48213.\n") << whole.err;
  EXPECT_FALSE(has_text(whole.err, "is taken to be"));
  const Result words = ask({facts, "Question: What is", "the secret number of",
                            "Rome?\nAnswer:", "The", "secret", "number", "of", "Rome", "is"});
  EXPECT_EQ(words.out, whole.out) << words.err;
  EXPECT_TRUE(has_text(words.err, "the question is taken to be \"Question: What is the secret"))
      << words.err;
  for (const std::vector<std::string>& missing : std::vector<std::vector<std::string>>{
           {facts, "What", "does", "notes.md", "say?"}, {"missing/facts", "What?"}}) {
    const Result r = ask(missing);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_TRUE(has_text(r.err, "there is no file")) << r.err;
  }
  const Result late = ask({"What", "says", facts});
  EXPECT_EQ(late.code, 2);
  EXPECT_TRUE(has_text(late.err, "a document after the question's first words: ")) << late.err;
}

TEST(Run, AnEmptyDocumentIsAnErrorThatNamesIt) {
  const std::string empty = make_file("empty.txt", " \n\n");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"run", needle_model(), empty, "What?"},
        {"generate", "-m", needle_model(), "-f", empty, "-p", "What?"},
        {"compress", "-m", needle_model(), "-f", empty, "-o", "a.kv"}}) {
    const Result r = run_with({}, args);
    EXPECT_EQ(r.code, 2) << args[0] << r.err;
    EXPECT_TRUE(has_text(r.err, empty + " is empty: there is no text in it")) << r.err;
  }
}

TEST(Run, ComparesTwoCaches) {
  const Result r = run_with({}, {"run", needle_model(), rome_prompt(20), "-n", "7", "--temp", "0",
                                 "--kv-budget", "96", "--compare", "full"});
  EXPECT_EQ(r.code, 0) << r.err;
  for (const char* part :
       {"full cache:\n 48213.", "SnapKV:\n 48213.", "the answers are the same"}) {
    EXPECT_TRUE(has_text(r.out, part)) << part << " in\n" << r.out;
  }
  EXPECT_EQ(run_with({}, {"run", needle_model(), "What?", "--compare", "full", "--cite"}).code, 2);
}

TEST(Run, ATerminalGetsTheChatWithTheDocuments) {
  const std::string pdf = make_file("facts.pdf", make_pdf({read_file(facts_file())}));
  TerminalSession terminal(
      {"run", needle_model(), pdf, "--chat-template", plain_template(), "--temp", "0", "-n", "7"});
  terminal.wait_for("with the chat; the next message begins with it");
  terminal.type(question());
  terminal.wait_for("48213.");
  terminal.type("/exit\n");
  EXPECT_EQ(terminal.wait_for_end(), 0) << terminal.screen();
}

TEST(Run, AMessageThatDoesNotFitComesBackToBeEdited) {
  TerminalSession terminal(
      {"run", needle_model(), "--chat-template", plain_template(), "-c", "40", "-n", "1"});
  terminal.wait_for("> ");
  const std::string message = std::string(50, 'z') + "7q7";
  terminal.type(message + "\n");
  terminal.wait_for("not sent: with this message the chat has");
  terminal.wait_for("z7q7");
  terminal.type("\x15hi\n");  // Ctrl-U drops the line
  terminal.wait_for("stopped after 1 token");
  terminal.type("/exit\n");
  EXPECT_EQ(terminal.wait_for_end(), 0) << terminal.screen();
}

TEST(Commands, ThatAreNotThereAreNamed) {
  const auto refuses = [](std::vector<std::string> args, std::vector<std::string> parts) {
    const Result r = run(args);
    EXPECT_EQ(r.code, 2) << r.err;
    for (const std::string& part : parts) EXPECT_TRUE(has_text(r.err, part)) << part << r.err;
  };
  refuses({"generat", "-p", "x"}, {"there is no command 'generat'", "did you mean generate?"});
  refuses({"download", "llama3"}, {"'download'", "snapkv pull org/repo"});
  refuses({"eval", "needel"}, {"snapkv eval has no task 'needel'", "did you mean needle?"});
  refuses({"model.gguf"}, {"snapkv run model.gguf begins a chat"});
  EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "info"}).out, run({"info", "--help"}).out);
}

}  // namespace run_tests
}  // namespace snapkv::test
