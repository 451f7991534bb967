// SPDX-License-Identifier: MIT
// Which servers snapkv pull trusts (TLS).
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "pull_support.h"
#include "run_process.h"

namespace snapkv::test {
namespace pull_certificates_tests {

/// A server that only an authority of its own vouches for, which is itself.
class PullCertificates : public testing::Test {
 protected:
  void SetUp() override {
    const std::string key = folder_ + "/key.pem";
    const std::string make =
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=here "
        "-addext subjectAltName=IP:127.0.0.1 -keyout " +
        key + " -out " + certificate_ + " 2>/dev/null";
    if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no openssl command to make a key with";
    server_ = std::make_unique<httplib::SSLServer>(certificate_.c_str(), key.c_str());
    ASSERT_TRUE(server_->is_valid());
    server_->Get("/a.gguf", [](const httplib::Request&, httplib::Response& res) {
      res.set_header("ETag", "\"1\"");
      res.set_content(needle(), "application/octet-stream");
    });
    const int port = server_->bind_to_any_port("127.0.0.1");
    ASSERT_GT(port, 0);
    url_ = "https://127.0.0.1:" + std::to_string(port) + "/a.gguf";
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void TearDown() override {
    if (server_ != nullptr) server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  Result pull_it(const std::string& certificate_file) {
    Environment env = {{"HOME", folder_}};
    if (!certificate_file.empty()) env["SSL_CERT_FILE"] = certificate_file;
    return pull(env, url_, {"--retries", "0"});
  }

  std::string folder_ = make_folder();
  std::string certificate_ = folder_ + "/certificate.pem";
  std::string url_;
  std::unique_ptr<httplib::SSLServer> server_;
  std::thread thread_;
};

TEST_F(PullCertificates, AServerOfAnAuthorityThatSslCertFileNamesIsTrusted) {
  const Result result = pull_it(certificate_);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(read_file(folder_ + "/.cache/snapkv/models/a.gguf"), needle());
}

TEST_F(PullCertificates, AnUnknownAuthorityIsRefusedWithAWayOut) {
  const Result result = pull_it("");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(says(result.err, url_)) << result.err;
  EXPECT_TRUE(says(result.err, "certificate")) << result.err;
  EXPECT_TRUE(says(result.err, "SSL_CERT_FILE")) << result.err;
  EXPECT_TRUE(files_below(folder_ + "/.cache/snapkv/models").empty());
}

TEST_F(PullCertificates, AnSslCertFileThatIsNotThereIsAnError) {
  const Result result = pull_it(folder_ + "/none.pem");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(says(result.err, "SSL_CERT_FILE: expected a file")) << result.err;
  EXPECT_TRUE(says(result.err, "none.pem")) << result.err;
}

}  // namespace pull_certificates_tests
}  // namespace snapkv::test
