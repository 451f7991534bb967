// SPDX-License-Identifier: MIT
// snapkv pull: what it fetches, where that goes, and that other commands find it there.
#include <gtest/gtest.h>

#include <filesystem>

#include "chat_support.h"
#include "pull_support.h"
#include "run_process.h"
#include "terminal_session.h"
#include "tests/support/tiny_file.h"

namespace snapkv::test {
namespace pull_tests {

namespace fs = std::filesystem;

constexpr const char* kRepo = "acme/needle-GGUF";

/// A hub with a repository as people upload them: several quantizations, a projector, a README.
struct Hub : FakeHub {
  Hub() {
    repos[kRepo] = {{"README.md", {.content = "# Needle", .is_large = false}},
                    {"mmproj-needle.gguf", {.content = "GGUF projector"}},
                    {"imatrix.gguf", {.content = "GGUF matrix"}},
                    {"needle-Q4_K_M.gguf", {.content = needle()}},
                    {"needle-Q8_0.gguf", {.content = "GGUF of eight bits"}}};
  }
};

TEST(Pull, FetchesIntoTheCacheOfHuggingFacesPrograms) {
  const Hub hub;
  const Environment env = hub.environment();
  const Result r = pull(env, kRepo);
  ASSERT_EQ(r.code, 0) << r.err;
  const fs::path folder = FakeHub::folder(env, kRepo);
  const fs::path file = folder / "snapshots" / hub.commit / "needle-Q4_K_M.gguf";
  EXPECT_EQ(r.out, file.string() + "\n");
  EXPECT_EQ(fs::read_symlink(file), "../../blobs/" + sha256_of(needle()));
  EXPECT_EQ(read_file(file), needle());
  EXPECT_EQ(read_file(folder / "refs/main"), hub.commit);
  EXPECT_EQ(files_below(folder),
            (std::vector<std::string>{"blobs/" + sha256_of(needle()), "refs/main"}));
  EXPECT_TRUE(says(r.err, "fetching needle-Q4_K_M.gguf (5.0 MiB) from 127.0.0.1 into")) << r.err;

  EXPECT_EQ(fetched_models(env), std::vector<std::string>{"acme/needle-GGUF/needle-Q4_K_M"});
  for (const char* name : {"acme/needle-GGUF", "Acme/Needle-gguf:q4_k_m", "hf.co/acme/needle-GGUF",
                           "acme/needle-GGUF:needle-Q4_K_M.gguf"}) {
    EXPECT_EQ(run_in(env, {"run", name, rome_prompt(4), "-n", "7", "--temp", "0"}).out, " 48213.\n")
        << name;
  }
}

TEST(Pull, FetchesNothingTwice) {
  Hub hub;
  const Environment env = hub.environment();
  ASSERT_EQ(pull(env, kRepo).code, 0);
  EXPECT_EQ(hub.n_fetches(), 1);
  const Result again = pull(env, kRepo);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(says(again.err, "is there")) << again.err;
  EXPECT_EQ(hub.n_fetches(), 1);
  hub.commit = std::string(40, 'b');  // another commit with the same file: a link is enough
  hub.repos[kRepo]["new-Q6_K.gguf"] = {.content = "GGUF new"};
  const Result newer = pull(env, kRepo);
  EXPECT_EQ(newer.code, 0) << newer.err;
  EXPECT_TRUE(says(newer.out, "/snapshots/" + hub.commit + "/")) << newer.out;
  EXPECT_EQ(hub.n_fetches(), 1);
  // what only an older commit has is still listed
  ASSERT_EQ(pull(env, std::string(kRepo) + ":Q6_K").code, 0);
  hub.commit = std::string(40, 'c');
  ASSERT_EQ(pull(env, std::string(kRepo) + ":Q6_K").code, 0);
  EXPECT_EQ(fetched_models(env).size(), 2u);
}

TEST(Pull, ChoosesTheFileByItsQuantization) {
  Hub hub;
  hub.repos["acme/one-GGUF"] = {{"only.gguf", {.content = "GGUF only"}}};
  hub.repos["acme/two-GGUF"] = {{"a-UD-Q4_0.gguf", {.content = "GGUF a"}},
                                {"sub/a-Q4_0.gguf", {.content = "GGUF sub/a"}},
                                {"a-Q3_K_M.gguf", {.content = "GGUF three"}}};
  hub.repos["acme/none"] = {{"model.safetensors", {.content = "x"}}};
  const Environment env = hub.environment();
  const auto fetches = [&](const std::string& source, const std::string& content) {
    const Result r = pull(env, source);
    ASSERT_EQ(r.code, 0) << source << r.err;
    EXPECT_EQ(read_file(r.out.substr(0, r.out.size() - 1)), content) << source;
  };
  fetches("acme/needle-GGUF:q8_0", "GGUF of eight bits");
  fetches(hub.endpoint() + "/acme/needle-GGUF/resolve/main/needle-Q8_0.gguf?download=true",
          "GGUF of eight bits");
  fetches("acme/one-GGUF", "GGUF only");
  fetches("acme/two-GGUF:Q3_K_M", "GGUF three");
  fetches("acme/two-GGUF:a-UD-Q4_0.gguf", "GGUF a");
  fetches("acme/two-GGUF/sub/a-Q4_0.gguf", "GGUF sub/a");
  const auto refuses = [&](const std::string& source, const std::vector<std::string>& parts) {
    const Result r = pull(env, source);
    EXPECT_EQ(r.code, 2) << source;
    for (const std::string& part : parts) EXPECT_TRUE(says(r.err, part)) << part << "\n" << r.err;
  };
  refuses("acme/two-GGUF:Q4_0", {"may be any of 2 files", "a-UD-Q4_0.gguf", "sub/a-Q4_0.gguf"});
  refuses("acme/two-GGUF", {"may be any of 2 files"});  // Q4_0 is the first usual one
  refuses("acme/needle-GGUF:Q5_1", {"has no Q5_1", "needle-Q4_K_M.gguf  5.0 MiB"});
  refuses("acme/none", {"no GGUF file", "acme/none-GGUF"});
  refuses("llama3.2", {"ollama's registry", "snapkv run finds the model"});
}

TEST(Pull, ReadsAllPagesOfAListing) {
  Hub hub;
  hub.page_size = 2;
  const Environment env = hub.environment();
  const Result r = pull(env, std::string(kRepo) + ":Q8_0");  // on the third page
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(says(r.out, "needle-Q8_0.gguf"));
}

TEST(Pull, FollowsARepositoryThatHasMoved) {
  Hub hub;
  hub.moved["acme/old-GGUF"] = kRepo;
  const Result r = pull(hub.environment(), "acme/old-GGUF:Q8_0");
  EXPECT_EQ(r.code, 0) << r.err;
}

TEST(Pull, SendsTheTokenToTheHubOnly) {
  Hub hub;
  hub.needs_token = "hf_secret";
  Environment env = hub.environment();
  env["HF_TOKEN"] = "hf_secret";
  ASSERT_EQ(pull(env, kRepo).code, 0);
  int n_hub = 0, n_storage = 0;
  for (const FakeHub::Request& request : hub.requests()) {
    EXPECT_EQ(request.authorization, request.to_hub ? "Bearer hf_secret" : "") << request.path;
    ++(request.to_hub ? n_hub : n_storage);
  }
  EXPECT_EQ(n_hub, 3);  // commit, listing, redirect
  EXPECT_EQ(n_storage, 1);
}

TEST(Pull, UsesTheFoldersThatHuggingFacesVariablesName) {
  const Hub hub;
  Environment env = hub.environment();
  env["HF_HOME"] = make_folder();
  ASSERT_EQ(pull(env, std::string(kRepo) + ":Q8_0").code, 0);
  EXPECT_TRUE(fs::exists(env["HF_HOME"] + "/hub/models--acme--needle-GGUF/refs/main"));
  env["HF_HUB_CACHE"] = make_folder();
  ASSERT_EQ(pull(env, std::string(kRepo) + ":Q8_0").code, 0);
  EXPECT_TRUE(fs::exists(env["HF_HUB_CACHE"] + "/models--acme--needle-GGUF/refs/main"));
  env["HF_HUB_OFFLINE"] = "1";
  const Result offline = pull(env, kRepo);
  EXPECT_EQ(offline.code, 1);
  EXPECT_TRUE(says(offline.err, "HF_HUB_OFFLINE")) << offline.err;
}

TEST(Pull, FetchesAllPartsOfASplitModel) {
  const fs::path folder = make_folder();
  const std::vector<std::string> parts =
      TinyFile().writer().write_split(folder.string() + "/tiny-Q8_0", 3);
  Hub hub;
  for (const std::string& part : parts) {
    const std::string name = fs::path(part).filename();
    hub.repos["acme/split-GGUF"]["Q8_0/" + name] = {.content = read_file(part)};
    hub.files[name] = {.content = read_file(part)};
  }
  ASSERT_GT(parts.size(), 1u);
  const Environment env = hub.environment();
  const Result r = pull(env, "acme/split-GGUF");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_FALSE(says(r.err, "can't run")) << r.err;
  EXPECT_EQ(hub.n_fetches(), std::ssize(parts));
  const Result by_url = pull(env, hub.url(fs::path(parts.front()).filename()));
  ASSERT_EQ(by_url.code, 0) << by_url.err;
  EXPECT_FALSE(says(by_url.err, "can't run")) << by_url.err;
  for (const Result& each : {r, by_url}) {
    const std::string path = each.out.substr(0, each.out.size() - 1);
    EXPECT_TRUE(says(path, "-00001-of-")) << path;
    EXPECT_EQ(run_in(env, {"info", "-m", path, "--check"}).code, 0);
  }
  hub.repos["acme/split-GGUF"].erase(hub.repos["acme/split-GGUF"].begin());
  const Result incomplete = pull(env, "acme/split-GGUF");
  EXPECT_EQ(incomplete.code, 1);
  EXPECT_TRUE(says(incomplete.err, "lacks parts")) << incomplete.err;
}

TEST(Pull, FetchesAUrlIntoSnapkvsFolder) {
  Hub hub;
  hub.files["needle one.gguf"] = {.content = needle()};
  const Environment env = hub.environment();
  const Result r = pull(env, hub.url("needle%20one.gguf"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, env.at("HOME") + "/.cache/snapkv/models/needle one.gguf\n");
  EXPECT_TRUE(says(r.err, "SHA-256 " + sha256_of(needle()))) << r.err;
  EXPECT_EQ(run_in(env, {"run", "needle one", rome_prompt(4), "-n", "7", "--temp", "0"}).out,
            " 48213.\n");
  EXPECT_TRUE(says(pull(env, hub.url("needle%20one.gguf")).err, "is there"));
  hub.files["needle one.gguf"] = {.content = needle() + "more"};
  const Result other = pull(env, hub.url("needle%20one.gguf"));
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(says(other.err, "is another file")) << other.err;
}

TEST(Pull, SaysWhatCannotRunOnceItIsThere) {
  const Hub hub;
  const Result r = pull(hub.environment(), std::string(kRepo) + ":Q8_0");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(says(r.err, "warning: it can't run")) << r.err;
}

TEST(Pull, RunNamesTheCommandWhereNobodyCanAnswer) {
  const Hub hub;
  const Environment env = hub.environment();
  const Result r = run_in(env, {"run", "acme/needle-GGUF:Q4_K_M", "What?"});
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(says(r.err, "snapkv pull acme/needle-GGUF:Q4_K_M")) << r.err;
  EXPECT_TRUE(hub.requests().empty());
}

TEST(Pull, RunOffersItAtATerminal) {
  const Hub hub;
  const Environment env = hub.environment();
  const std::vector<std::string> args = {
      "run", kRepo, facts_file(), "--chat-template", plain_template(), "-n", "7", "--temp", "0"};
  {
    TerminalSession terminal(args, env.at("HOME"), {{"HF_ENDPOINT", hub.endpoint()}});
    terminal.wait_for("Fetch needle-Q4_K_M.gguf (5.0 MiB) from 127.0.0.1? [y/N] ");
    terminal.type("\n");
    EXPECT_EQ(terminal.wait_for_end(), 2) << terminal.screen();
    EXPECT_TRUE(says(terminal.screen(), "snapkv pull acme/needle-GGUF")) << terminal.screen();
    EXPECT_EQ(hub.n_fetches(), 0);
  }
  {
    TerminalSession terminal(args, env.at("HOME"), {{"HF_ENDPOINT", hub.endpoint()}});
    terminal.wait_for("[y/N] ");
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait_for_end(), 130) << terminal.screen();
  }
  TerminalSession terminal(args, env.at("HOME"), {{"HF_ENDPOINT", hub.endpoint()}});
  terminal.wait_for("[y/N] ");
  terminal.type("y\n");
  terminal.wait_for("> ");
  terminal.type(question());
  terminal.wait_for("48213.");
  terminal.type("/exit\n");
  EXPECT_EQ(terminal.wait_for_end(), 0) << terminal.screen();
  EXPECT_EQ(hub.n_fetches(), 1);
}

}  // namespace pull_tests
}  // namespace snapkv::test
