// SPDX-License-Identifier: MIT
// Helpers for the tests of request bodies: they read bodies for a scripted engine and return
// errors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "server/api/exchange.h"
#include "tests/server/scripted_engine.h"

namespace snapkv::test {

using namespace server;

class Requests : public testing::Test {
 protected:
  ScriptedEngine engine_;
  ApiOptions options_ = api_options();

  Request read(ReadExchange read_exchange, const std::string& body) {
    return read_exchange(parse_body(body), ApiContext{engine_, options_}).request;
  }
  Request chat(const std::string& members) {
    return read(read_chat_completion, R"({"messages": [{"role": "user", "content": "Hi"}])" +
                                          (members.empty() ? "" : ", " + members) + "}");
  }
  /// The error message, preceded by its code or parameter.
  std::string error(ReadExchange read_exchange, const std::string& body) {
    try {
      (void)read(read_exchange, body);
    } catch (const ApiError& e) {
      EXPECT_EQ(e.status, 400) << e.what();
      return e.param + "| " + e.what();
    } catch (const std::exception& e) {
      return std::string("no ApiError: ") + e.what();
    }
    return "accepted";
  }
  void expect_error(const std::string& members, const std::string& param, const std::string& part) {
    const std::string text =
        error(read_chat_completion,
              R"({"messages": [{"role": "user", "content": "Hi"}], )" + members + "}");
    EXPECT_TRUE(text.starts_with(param + "| ")) << members << " gives " << text;
    EXPECT_NE(text.find(part), std::string::npos) << members << " gives " << text;
  }
};

}  // namespace snapkv::test
