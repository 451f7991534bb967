// SPDX-License-Identifier: MIT
// The precedence of settings: a flag, the environment, the configuration file, the default.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "run_process.h"
#include "snapkv/compute.h"

namespace snapkv::test {
namespace settings_tests {

using Json = nlohmann::json;

// Runs `snapkv generate` with a short prompt; its JSON has the settings in effect.
Command base() {
  Command r;
  r.args = {"generate", "-p", "At noon", "-n", "1", "--json"};
  r.env["SNAPKV_MODEL"] = needle_model();
  return r;
}

void use_default_config(Command& r, const std::string& text) {
  const std::string file = make_file("snapkv/config.toml", text);
  r.env["XDG_CONFIG_HOME"] = std::filesystem::path(file).parent_path().parent_path().string();
}

Json settings_of(const Command& r) {
  const Result result = run(r);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.code == 0 ? Json::parse(result.out).at("settings") : Json();
}

void expect_usage_error(const Command& r, const std::string& part) {
  const Result result = run(r);
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(Settings, DefaultsAreTheBestPolicysAndTheModels) {
  const Json s = settings_of(base());
  EXPECT_EQ(s["kv"]["policy"], "snapkv-max");
  EXPECT_EQ(s["kv"]["budget"], 1024);
  EXPECT_EQ(s["kv"]["window_size"], 16);  // window and kernel come from needle.gguf
  EXPECT_EQ(s["kv"]["kernel_size"], 15);
  EXPECT_EQ(s["kv"]["own_share"], 0.5);
}

TEST(Settings, ATaskOfACommandHasItsOwnSection) {
  // For eval needle the innermost section has precedence, and sections of other tasks have no
  // effect.
  const auto n_rows = [](const std::string& text) {
    const std::string out = make_folder() + "/rows.jsonl";
    Command r;
    r.args = {"eval", "needle",   "-m", needle_model(), "--out",  out,           "--lengths",
              "300",  "--depths", "1",  "--policies",   "snapkv", "--n-predict", "1"};
    use_default_config(r, text);
    const Result result = run(r);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_NE(n_rows("kv-budget = 100\n").find("snapkv 100"), std::string::npos);
  EXPECT_NE(n_rows("kv-budget = 100\n[eval]\nkv-budget = 101\n").find("snapkv 101"),
            std::string::npos);
  EXPECT_NE(n_rows("[eval]\nkv-budget = 101\n[eval.needle]\nkv-budget = 102\n").find("snapkv 102"),
            std::string::npos);
  Command r = base();
  use_default_config(r, "[eval.needles]\nkv-budget = 1\n");
  expect_usage_error(r, "section [eval.needles] is not a command");
}

TEST(Settings, FlagOverEnvironmentOverFile) {
  Command r = base();
  use_default_config(r, "# mine\nkv-budget = 100\ntemp = 0.25\nkv-own-share = 0.25\n");
  Json s = settings_of(r);
  EXPECT_EQ(s["kv"]["budget"], 100);
  EXPECT_EQ(s["kv"]["own_share"], 0.25);
  EXPECT_EQ(s["sampler"]["temperature"], 0.25);
  r.env["SNAPKV_KV_BUDGET"] = "200";
  s = settings_of(r);
  EXPECT_EQ(s["kv"]["budget"], 200);
  EXPECT_EQ(s["sampler"]["temperature"], 0.25);
  r.args.insert(r.args.end(), {"--kv-budget", "300"});
  EXPECT_EQ(settings_of(r)["kv"]["budget"], 300);
  r.args.insert(r.args.end(), {"--temp", "0"});
  EXPECT_EQ(settings_of(r)["sampler"]["temperature"], 0.0);
}

TEST(Settings, TheBudgetMayBeLeftToTheQuestion) {
  Command r = base();
  use_default_config(r, "kv-budget = \"auto\"\n");
  Json s = settings_of(r);
  EXPECT_EQ(s["kv"]["budget"], 1024);
  EXPECT_EQ(s["kv"]["least_attention"], 0.05);
  r.args.insert(r.args.end(), {"--kv-least-attention", "0.1"});
  EXPECT_EQ(settings_of(r)["kv"]["least_attention"], 0.1);
  r.args.insert(r.args.end(), {"--kv-budget", "300"});
  s = settings_of(r);
  EXPECT_EQ(s["kv"]["budget"], 300);
  EXPECT_EQ(s["kv"]["least_attention"], 0.1);
  r.args.insert(r.args.end(), {"--kv-budget", "automatic"});
  expect_usage_error(r, "'automatic' is not a whole number from 1 to 2147483647, or auto");
  Command other = base();
  other.args.insert(other.args.end(), {"--kv-policy", "snapkv", "--kv-budget", "auto"});
  expect_usage_error(other, "--kv-budget auto is for policy \"snapkv-max\"");
}

TEST(Settings, SectionsAreForOneCommandAndWin) {
  Command r = base();
  use_default_config(r,
                     "kv-budget = 100\n[generate]\nkv-budget = 150\nignore-eos = true\n"
                     "[demo]\nkv-budget = 170\nlength = 500\n");
  const Json s = settings_of(r);
  EXPECT_EQ(s["kv"]["budget"], 150);
  EXPECT_EQ(s["ignore_eos"], true);
}

TEST(Settings, NamedFileReplacesTheDefaultOne) {
  Command r = base();
  use_default_config(r, "kv-budget = 100\n");
  const std::string other = make_file("other.toml", "kv-window = 8\n");
  r.env["SNAPKV_CONFIG"] = other;
  Json s = settings_of(r);
  EXPECT_EQ(s["kv"]["budget"], 1024);
  EXPECT_EQ(s["kv"]["window_size"], 8);
  r.env["SNAPKV_CONFIG"] = "/nowhere.toml";
  r.args.insert(r.args.end(), {"--config", other});
  EXPECT_EQ(settings_of(r)["kv"]["window_size"], 8);
}

TEST(Settings, FlagsAndSizesWorkFromTheEnvironment) {
  Command r = base();
  r.env["SNAPKV_IGNORE_EOS"] = "1";
  r.env["SNAPKV_MEMORY_LIMIT"] = "3G";
  Json s = settings_of(r);
  EXPECT_EQ(s["ignore_eos"], true);
  EXPECT_EQ(s["memory_limit"], int64_t{3} << 30);
  r.env["SNAPKV_IGNORE_EOS"] = "false";
  EXPECT_EQ(settings_of(r)["ignore_eos"], false);
}

TEST(Settings, BadValuesNameTheirOrigin) {
  Command r = base();
  r.env["SNAPKV_KV_BUDGET"] = "many";
  expect_usage_error(r, "SNAPKV_KV_BUDGET");
  r = base();
  r.env["SNAPKV_KV_POOLING"] = "median";
  expect_usage_error(r, "median");
  r = base();
  use_default_config(r, "kv-budget = \"lots\"\n");
  expect_usage_error(r, "config.toml");
}

TEST(Settings, BadValuesOfFlagsNameTheirOrigin) {
  const auto expect_all = [](const Command& r, std::initializer_list<const char*> parts) {
    for (const char* part : parts) expect_usage_error(r, part);
  };
  for (const char* value : {"maybe", "x", "99999999999999999999"}) {
    SCOPED_TRACE(value);
    Command r = base();
    r.env["SNAPKV_KV_CRITICAL"] = value;
    expect_all(r, {"SNAPKV_KV_CRITICAL", "kv-critical", value, "true or false"});
    r = base();
    use_default_config(r, std::string("kv-critical = \"") + value + "\"\n");
    expect_all(r, {"config.toml", "kv-critical", value, "true or false"});
    r = base();
    r.args.push_back(std::string("--kv-critical=") + value);
    expect_all(r, {"--kv-critical", value, "true or false"});
  }
}

TEST(Settings, ValuesThatAreNotTomlNameLineAndSetting) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"stop = [\"a\", \"b\"\nkv-budget=64\n", "expected comma or closing ']', saw 'k'"},
      {"stop = [\"a\", \"b\"\nkv-budget=64\n[generate]\n", "saw 'k'"},
      {"stop = [\"a\", \"b\"\n", "encountered end-of-file"},
      {"stop = [\"a\" \"b\"]\n", "expected comma"},
      {"stop = [\"a]\n", "a quote is not closed on its line"},
      {"stop = [\n\"a]\n", "a quote is not closed on its line"},
      {"stop = \"a\nkv-budget = 64\n", "a quote is not closed on its line"},
      {"stop = 'a\n", "a quote is not closed on its line"},
      {"stop = \"\n", "a quote is not closed on its line"},
      {"stop = \"a\"b\n", "saw 'b'"},
      {"stop = \"a\", \"b\n", "saw ','"},
      {"stop = don't\n", "expected a number, true, false, or text in quotes, found don't ("},
      {"stop = false alarm\n", "saw 'a'"},
      {"stop=8G\n", "expected a number, true, false, or text in quotes, found 8G ("},
      {"stop = 1979-05-27\n", "expected text, numbers, true or false, found date"},
      {"stop = [[\"a\"]]\n", "expected text, numbers, true or false, found array"},
  };
  for (const auto& [text, what] : kWrong) {
    SCOPED_TRACE(text);
    Command r = base();
    use_default_config(r, std::string("# mine\n") + text);
    expect_usage_error(r, "config.toml: line 2: stop: ");
    expect_usage_error(r, what);
  }
}

TEST(Settings, ListsAndQuotesInTheFileAreRead) {
  const auto stops = [](const std::string& text) {
    Command r = base();
    use_default_config(r, text + "\nkv-budget = 64\n");
    const Json s = settings_of(r);
    EXPECT_EQ(s["kv"]["budget"], 64);
    return s["stops"];
  };
  const Json kTwo = {"a", "b, c"};
  EXPECT_EQ(stops("stop = [\"a\", \"b, c\"]"), kTwo);
  EXPECT_EQ(stops("stop = [\n\"a\" ,\n  'b, c' # two\n]  "), kTwo);
  EXPECT_EQ(stops("generate.stop = [\"a\",'b, c']"), kTwo);
  EXPECT_EQ(stops("stop = \"a # \\\"b\\\"\""), Json({"a # \"b\""}));
  EXPECT_EQ(stops("stop = \"\"\"\n[a]\nb = 1\"\"\""), Json({"[a]\nb = 1"}));
}

TEST(Settings, MisspeltNamesInTheFileAreErrors) {
  Command r = base();
  use_default_config(r, "kv-buget = 100\n");
  expect_usage_error(r, "unknown setting 'kv-buget'; did you mean kv-budget?");
  use_default_config(r, "[generate]\nkv_budget = 100\n");
  expect_usage_error(r,
                     "unknown setting 'kv_budget' in section [generate]; did you mean kv-budget?");
  use_default_config(r, "temp = 0\n[generat]\nkv-budget = 100\n");
  expect_usage_error(
      r, "config.toml: line 2: section [generat] is not a command; did you mean generate?");
  use_default_config(r, "[info]\ntemp = 1\n");
  expect_usage_error(r, "temp");
  use_default_config(r, "prompt = \"hidden\"\n");
  expect_usage_error(r, "prompt");
}

TEST(Settings, CpuTargetRestrictsTheInstructions) {
  const auto backend_of = [](const Command& r) {
    const Result result = run(r);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? Json::parse(result.out).at("model").at("backend").get<std::string>()
                            : "";
  };
  const std::string all = backend_of(base());
  for (const std::string& name : cpu_targets()) {
    const std::string expected = name == "auto" ? all : "cpu (" + name;
    Command r = base();
    r.env["SNAPKV_CPU_TARGET"] = name;
    EXPECT_EQ(backend_of(r).find(expected), 0u) << name;
    r.env["SNAPKV_CPU_TARGET"] = "auto";
    r.args.insert(r.args.end(), {"--cpu-target", name});
    EXPECT_EQ(backend_of(r).find(expected), 0u) << name;
  }
  Command r = base();
  r.args.insert(r.args.end(), {"--cpu-target", "avx1024"});
  expect_usage_error(r, "avx1024");
  expect_usage_error(r, "auto");  // the message lists the valid values
  r = base();
  r.env["SNAPKV_CPU_TARGET"] = "avx1024";
  expect_usage_error(r, "SNAPKV_CPU_TARGET");
}

TEST(Settings, MissingNamedFileIsAnError) {
  Command r = base();
  r.args.insert(r.args.end(), {"--config", "/nowhere.toml"});
  const Result result = run(r);
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("/nowhere.toml"), std::string::npos) << result.err;
}

}  // namespace settings_tests
}  // namespace snapkv::test
