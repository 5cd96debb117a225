// TLS of HTTP integrations against a real TLS server: rotated files, names, versions, HTTP/2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/real_bench.h"
#include "tests/support/http_sink.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;
using tests::ChildProgram;

/// Authority, server and two clients, made by openssl.
class Certificates {
 public:
  Certificates()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("tocsin-http-tls-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    run({"req", "-x509", "-subj", "/CN=authority", "-keyout", path("ca.key"), "-out",
         path("ca.pem"), "-days", "2", "-nodes", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256"});
    sign("server", "subjectAltName=IP:127.0.0.1");
    sign("inside", "subjectAltName=DNS:hooks.inside.example");
    sign("one", "extendedKeyUsage=clientAuth");
    sign("two", "extendedKeyUsage=clientAuth");
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  /// As tools that rotate files do it: a new file takes the place of the old one.
  void put(const std::string& from, const std::string& to) const {
    std::filesystem::copy_file(path(from), path(to + ".new"),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(path(to + ".new"), path(to));
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text << "\n";
  }

 private:
  static void run(std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    ChildProgram made(words);
    ASSERT_EQ(made.wait(), 0) << words[1];
  }
  void sign(const std::string& name, const std::string& extension) {
    write(name + ".ext", extension);
    run({"req", "-subj", "/CN=" + name, "-keyout", path(name + ".key"), "-out", path(name + ".csr"),
         "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"});
    run({"x509", "-req", "-in", path(name + ".csr"), "-CA", path("ca.pem"), "-CAkey",
         path("ca.key"), "-CAcreateserial", "-days", "2", "-out", path(name + ".pem"), "-extfile",
         path(name + ".ext")});
  }
  std::filesystem::path folder_;
};

struct HttpTls : ::testing::Test {
  static void SetUpTestSuite() { files = std::make_unique<Certificates>(); }
  static void TearDownTestSuite() { files.reset(); }

  std::unique_ptr<ChildProgram> server(const std::string& name,
                                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"/usr/bin/python3",
                                   "tests/support/tls_receiver.py",
                                   "--cert",
                                   files->path(name + ".pem"),
                                   "--key",
                                   files->path(name + ".key")};
    words.insert(words.end(), more.begin(), more.end());
    auto out = std::make_unique<ChildProgram>(words);
    port = out->port();
    return out;
  }
  std::unique_ptr<core::Action> hook(const std::string& tls, const std::string& keys = "") {
    return bench.make("webhook", "{url: 'https://127.0.0.1:" + std::to_string(port) +
                                     "/', allow_private: [127.0.0.0/8], tls: {ca_file: " +
                                     files->path("ca.pem") + tls + "}" + keys + "}");
  }
  static core::AttemptOutcome send(core::Action& action) {
    return deliver_within(action, sample_notification(), 10s);
  }
  static json told(ChildProgram& by) { return json::parse(by.line_with("{")); }

  static inline std::unique_ptr<Certificates> files;
  RealBench bench;
  int port = 0;
};

TEST_F(HttpTls, AClientCertificateThatChangedIsUsedByTheNextAttempt) {
  const auto by = server("server", {"--ca", files->path("ca.pem")});
  files->put("one.pem", "client.pem");
  files->put("one.key", "client.key");
  const auto action = hook(", cert_file: " + files->path("client.pem") +
                           ", key_file: " + files->path("client.key"));
  ASSERT_EQ(send(*action).outcome, OutcomeClass::delivered);
  ASSERT_EQ(send(*action).outcome, OutcomeClass::delivered);
  const json first = told(*by);
  const json kept = told(*by);
  EXPECT_EQ(first["client"], "one");
  EXPECT_EQ(kept["connection"], first["connection"]) << "it was kept";
  files->put("two.pem", "client.pem");
  files->put("two.key", "client.key");
  ASSERT_EQ(send(*action).outcome, OutcomeClass::delivered);
  const json rotated = told(*by);
  EXPECT_EQ(rotated["client"], "two");
  EXPECT_NE(rotated["connection"], first["connection"]);
  std::filesystem::remove(files->path("client.pem"));
  EXPECT_EQ(send(*action).outcome, OutcomeClass::configuration) << "nothing old is used";
}

TEST_F(HttpTls, ATokenFileThatChangedIsUsedOnTheKeptConnection) {
  const auto by = server("server");
  files->write("token", "first-token");
  const auto action = hook("", ", http2: false, bearer_token_file: " + files->path("token"));
  ASSERT_EQ(send(*action).outcome, OutcomeClass::delivered);
  files->write("token", "other-token");
  ASSERT_EQ(send(*action).outcome, OutcomeClass::delivered);
  const json first = told(*by);
  const json other = told(*by);
  EXPECT_EQ(first["authorization"], "Bearer first-token");
  EXPECT_EQ(other["authorization"], "Bearer other-token");
  EXPECT_EQ(other["connection"], first["connection"]);
}

TEST_F(HttpTls, AnAuthorityThatIsNoLongerTrustedIsNot) {
  const auto by = server("server");
  files->put("ca.pem", "trusted.pem");
  const auto action = bench.make(
      "webhook",
      "{url: 'https://127.0.0.1:" + std::to_string(port) +
          "/', allow_private: [127.0.0.0/8], tls: {ca_file: " + files->path("trusted.pem") + "}}");
  ASSERT_EQ(send(*action).outcome, OutcomeClass::delivered);
  files->put("one.pem", "trusted.pem");
  const core::AttemptOutcome out = send(*action);
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_EQ(out.code, "certificate");
}

TEST_F(HttpTls, TheCertificateMayHaveAnotherNameIfItIsAskedFor) {
  const auto by = server("inside");
  const core::AttemptOutcome refused = send(*hook(""));
  EXPECT_EQ(refused.code, "certificate");
  const core::AttemptOutcome out =
      send(*hook(", server_name: hooks.inside.example", ", http2: false"));
  ASSERT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  const json seen = told(*by);
  EXPECT_EQ(seen["server_name"], "hooks.inside.example");
  EXPECT_EQ(seen["host"], "127.0.0.1:" + std::to_string(port)) << "the URL's own";
  EXPECT_EQ(send(*hook(", server_name: other.example")).code, "certificate");
}

TEST_F(HttpTls, AnOlderTlsThanAskedForIsNotSpoken) {
  const auto by = server("server", {"--max-version", "1.2"});
  ASSERT_EQ(send(*hook("")).outcome, OutcomeClass::delivered);
  EXPECT_EQ(told(*by)["version"], "TLSv1.2");
  EXPECT_NE(send(*hook(", min_version: '1.3'")).outcome, OutcomeClass::delivered);
}

TEST_F(HttpTls, Http2IsSpokenWhereTheServerDoesAndItIsNotTurnedOff) {
  const auto by = server("server");
  const auto both = hook("");
  ASSERT_EQ(send(*both).outcome, OutcomeClass::delivered);
  ASSERT_EQ(send(*both).outcome, OutcomeClass::delivered);
  const json first = told(*by);
  EXPECT_EQ(first["alpn"], "h2");
  EXPECT_EQ(told(*by)["connection"], first["connection"]);
  ASSERT_EQ(send(*hook("", ", http2: false")).outcome, OutcomeClass::delivered);
  const json plain = told(*by);
  EXPECT_NE(plain["alpn"], "h2");
  EXPECT_EQ(plain["request"], "POST / HTTP/1.1");
}

// docs/actions/keys.md: one connection for each attempt that may be in flight.
TEST(HttpConnections, AnIntegrationHasNoMoreThanItsThreads) {
  tests::HttpSink sink;
  RealBench bench;
  const auto action =
      bench.make("webhook", "{url: '" + sink.url() + "', allow_private: [127.0.0.0/8]}");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 10; ++n) {
          EXPECT_EQ(deliver_within(*action, sample_notification(), 5s).outcome,
                    OutcomeClass::delivered);
        }
      });
    }
  }
  EXPECT_EQ(sink.requests(), 30u);
  EXPECT_LE(sink.connections(), 3u);
}

}  // namespace
}  // namespace tocsin::actions
