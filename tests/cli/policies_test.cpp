// SPDX-License-Identifier: MIT
// snapkv policies, and everything else that is made from the tables of policies: the options of
// commands, their environment variables, records, and the tables of docs/policies.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "run_process.h"
#include "tests/support/marked_part.h"

namespace snapkv::test {
namespace policies_tests {

using Json = nlohmann::ordered_json;

Json policies() {
  const Result r = run({"policies", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  return Json::parse(r.out);
}

// A value of the parameter other than its default.
std::string other_value(const Json& param) {
  if (param.at("type") == "boolean") return "true";
  if (param.at("type") == "word") {
    return param.at("default") == param.at("words")[0] ? param.at("words")[1]
                                                       : param.at("words")[0];
  }
  if (param.at("type") == "real") return "0.5";
  return std::to_string(param.at("default").get<int64_t>() + 2);
}

Command generate(const std::string& policy) {
  Command command;
  command.args = {"generate", "-m",     needle_model(),  "-p",          "a text", "-n",
                  "0",        "--json", "--no-progress", "--kv-policy", policy};
  return command;
}

Json settings_of(const Command& command) {
  const Result r = run(command);
  EXPECT_EQ(r.code, 0) << r.err;
  return Json::parse(r.out).at("settings").at("kv");
}

TEST(Policies, PrintsEveryPolicyWithItsParameters) {
  const Result text = run({"policies"});
  EXPECT_EQ(text.code, 0) << text.err;
  std::set<std::string> names;
  for (const Json& policy : policies()) {
    names.insert(policy.at("name"));
    EXPECT_NE(text.out.find(policy.at("name").get<std::string>() + ": "), std::string::npos);
    EXPECT_FALSE(policy.at("score").get<std::string>().empty());
    for (const Json& param : policy.at("parameters")) {
      EXPECT_FALSE(param.at("help").get<std::string>().empty());
      EXPECT_NE(text.out.find(param.at("option").get<std::string>() + " "), std::string::npos);
      EXPECT_EQ(param.at("option").get<std::string>().find("--kv-"), 0u);
    }
  }
  EXPECT_EQ(names.size(), policies().size());
  EXPECT_TRUE(names.count("snapkv") == 1 && names.count("full") == 1);
}

// One option serves all policies that have the parameter, so the parameter must be the same in all
// of them.
TEST(Policies, ShareParametersOnlyWithTheWholeTable) {
  std::map<std::string, Json> by_name;
  std::map<std::string, std::string> name_of;  // by the names of options
  for (const Json& policy : policies()) {
    for (Json param : policy.at("parameters")) {
      param.erase("default");
      const std::string name = param.at("name");
      EXPECT_EQ(by_name.emplace(name, param).first->second, param) << name;
      EXPECT_EQ(name_of.emplace(param.at("option"), name).first->second, name);
    }
  }
}

TEST(Policies, EveryParameterIsAnOptionAVariableAndASetting) {
  for (const Json& policy : policies()) {
    const std::string name = policy.at("name");
    for (const Json& param : policy.at("parameters")) {
      const std::string option = param.at("option"), value = other_value(param);
      const bool is_flag = param.at("type") == "boolean";
      Command typed = generate(name);
      typed.args.push_back(option);
      if (!is_flag) typed.args.push_back(value);
      Command variable = generate(name);
      std::string name_there = "SNAPKV_" + option.substr(2);
      for (char& c : name_there) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
      variable.env[name_there] = value;
      for (const Command& command : {typed, variable}) {
        const Json set = settings_of(command).at(param.at("name").get<std::string>());
        EXPECT_EQ(set.is_string() ? set.get<std::string>() : set.dump(), value)
            << name << " " << option;
      }
      const std::map<std::string, int> of_model = {{"window_size", 16}, {"kernel_size", 15}};
      const auto own = of_model.find(param.at("name").get<std::string>());
      EXPECT_EQ(settings_of(generate(name)).at(param.at("name").get<std::string>()),
                own == of_model.end() ? param.at("default") : Json(own->second))
          << "the default, or what the model's file names";
    }
  }
}

TEST(Policies, AnOptionOfAnotherPolicyIsAnErrorWhereItWasTyped) {
  Command typed = generate("knorm");
  typed.args.insert(typed.args.end(), {"--kv-kernel", "15"});
  const Result r = run(typed);
  EXPECT_EQ(r.code, 2);
  for (const char* part : {"--kv-kernel", "knorm", "--kv-window"}) {
    EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
  }
  Command variable = generate("knorm");  // the variable may be meant for other commands
  variable.env["SNAPKV_KV_KERNEL"] = "15";
  EXPECT_FALSE(settings_of(variable).contains("kernel_size"));
  Command full = generate("full");  // the policy ignores all settings
  full.args.insert(full.args.end(), {"--kv-kernel", "15", "--kv-budget", "50"});
  EXPECT_FALSE(settings_of(full).contains("budget"));
}

TEST(Policies, ErrorsNameTheOption) {
  Command command = generate("expected-attention");
  command.args.insert(command.args.end(), {"--kv-future", "0"});
  const Result r = run(command);
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("--kv-future: '0' is not a whole number from 1 to 65536"), std::string::npos)
      << r.err;
  EXPECT_EQ(r.err.find("n_future"), std::string::npos) << r.err;
  Command window = generate("snapkv");
  window.args.insert(window.args.end(), {"--kv-budget", "40", "--kv-window", "40"});
  EXPECT_NE(run(window).err.find("--kv-budget is 40"), std::string::npos) << run(window).err;
}

TEST(Policies, HelpSaysWhoseParametersTheyAre) {
  const Result r = run({"generate", "--help-all"});
  for (const char* part : {"for chunkkv:", "Rows kept or dropped together; at least 1",
                           "--kv-sinks N", "0; expected-attention: 4", "odd and from 1 to 65535"}) {
    EXPECT_NE(r.out.find(part), std::string::npos) << part << " is missing in\n" << r.out;
  }
  EXPECT_NE(r.out.find("7; snapkv-max: 63, or what"), std::string::npos) << r.out;
  const Result demo = run({"demo", "--help"});  // has its own default budget
  // versions of CLI11 write it differently
  const bool has_default = demo.out.find("--kv-budget N|auto=128") != std::string::npos ||
                           demo.out.find("--kv-budget N|auto [128") != std::string::npos;
  EXPECT_TRUE(has_default) << demo.out;
}

TEST(Generated, PoliciesOfTheDocument) {
  expect_marked_part(std::string(SNAPKV_DOCS) + "/policies.md",
                     "<!-- snapkv policies --markdown -->", run({"policies", "--markdown"}).out);
}

}  // namespace policies_tests
}  // namespace snapkv::test
