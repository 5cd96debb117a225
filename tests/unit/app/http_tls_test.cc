// The HTTP server over TLS: its files, who may connect, and what is not TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "app/serve/http_server.h"
#include "tests/unit/app/http_client.h"

namespace tocsin::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kAskName = "GET /name HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

class HttpTls : public ::testing::Test {
 protected:
  [[nodiscard]] TlsConfig files(const std::string& client_ca = "") const {
    return {certificates_.path("server.crt"), certificates_.path("server.key"), client_ca};
  }
  core::Result<std::unique_ptr<HttpServer>> serve(const TlsConfig& tls) {
    HttpConfig config{"127.0.0.1:0", {}};
    config.tls = tls;
    return HttpServer::start(config,
                             HttpRoutes({{"GET", "/name", "text/plain",
                                          [](const HttpRequest& request) {
                                            return HttpAnswer{
                                                200, (request.secure ? "over TLS " : "in clear ") +
                                                         std::string(request.certificate) + "\n"};
                                          }}}),
                             log_);
  }
  std::string refusal(const TlsConfig& tls) {
    const auto made = serve(tls);
    EXPECT_FALSE(made);
    if (made) return "";
    EXPECT_EQ(made.error().code, core::Code::invalid_argument);
    return made.error().message;
  }
  const TestCertificates certificates_;
  core::NullLog log_;
};

TEST_F(HttpTls, TheHandlerKnowsThatItCameOverTls) {
  const auto server = serve(files());
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_THAT(ask_once((*server)->address(), kAskName, certificates_.path("server.crt")),
              HasSubstr("\r\n\r\nover TLS \n"));
}

TEST_F(HttpTls, ClearTextIsToldWhatToDo) {
  const auto server = serve(files());
  ASSERT_TRUE(server);
  const auto answer = ask_once((*server)->address(), kAskName);
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("speaks TLS")));
  const std::size_t body = answer.find("\r\n\r\n") + 4;
  EXPECT_THAT(answer, HasSubstr("Content-Length: " + std::to_string(answer.size() - body)));
}

TEST_F(HttpTls, OldVersionsAreRefused) {
  const auto server = serve(files());
  ASSERT_TRUE(server);
  const auto shakes_hands = [&](int version) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);  // so that this side would
    SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, version);
    const TestClient socket((*server)->address());
    SSL* tls = SSL_new(context);
    SSL_set_fd(tls, socket.fd());
    const bool done = SSL_connect(tls) == 1;
    SSL_free(tls);
    SSL_CTX_free(context);
    return done;
  };
  EXPECT_FALSE(shakes_hands(TLS1_1_VERSION));
  EXPECT_TRUE(shakes_hands(TLS1_2_VERSION));
  EXPECT_TRUE(shakes_hands(TLS1_3_VERSION));
}

TEST_F(HttpTls, ANewCertificateCountsAtTheNextConnection) {
  const auto server = serve(files());
  ASSERT_TRUE(server);
  const std::string root = certificates_.path("server.crt");
  const std::string old_root = certificates_.path("old.crt");
  std::filesystem::copy_file(root, old_root);
  ASSERT_TRUE(TestClient((*server)->address(), old_root).speaks());
  certificates_.make("server");
  EXPECT_FALSE(TestClient((*server)->address(), old_root).speaks());
  EXPECT_THAT(ask_once((*server)->address(), kAskName, root), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpTls, ABadNewFileLeavesTheOldCertificateInUse) {
  const auto server = serve(files());
  ASSERT_TRUE(server);
  const std::string kept = certificates_.path("kept.crt");
  std::filesystem::copy_file(certificates_.path("server.crt"), kept);
  std::ofstream(certificates_.path("server.crt")) << "half a certificate";
  EXPECT_TRUE(TestClient((*server)->address(), kept).speaks());
  EXPECT_TRUE(TestClient((*server)->address(), kept).speaks()) << "and at the next one";
}

TEST_F(HttpTls, OnlyAClientWithACertificateIsServedWhereOneIsDemanded) {
  certificates_.make("ada");
  certificates_.make("mallory");
  const auto server = serve(files(certificates_.path("ada.crt")));
  ASSERT_TRUE(server) << server.error().message;
  const std::string root = certificates_.path("server.crt");
  const auto answer = [&](const std::string& own) {
    TestClient client((*server)->address(), root, own);
    client.send(kAskName);
    return client.receive_all();
  };
  EXPECT_THAT(answer(certificates_.path("ada")), HasSubstr("over TLS ada\n"));
  EXPECT_EQ(answer(certificates_.path("mallory")), "");
  EXPECT_EQ(answer(""), "");
}

TEST_F(HttpTls, ABadFileIsRefusedWithItsNameAndWhy) {
  const std::string nowhere = certificates_.path("nowhere.pem");
  const std::string key = certificates_.path("server.key");
  const std::string crt = certificates_.path("server.crt");
  EXPECT_THAT(refusal({nowhere, key, ""}),
              AllOf(HasSubstr("http.tls.cert_file: "), HasSubstr(nowhere), HasSubstr("No such")));
  EXPECT_THAT(refusal({key, key, ""}), AllOf(HasSubstr(key), HasSubstr("no certificate in PEM")));
  EXPECT_THAT(refusal({crt, crt, ""}),
              AllOf(HasSubstr("http.tls.key_file: "), HasSubstr("no private key in PEM")));
  EXPECT_THAT(refusal({crt, certificates_.path(""), ""}), HasSubstr("it is a directory"));
  EXPECT_THAT(refusal({crt, key, key}),
              AllOf(HasSubstr("http.tls.client_ca_file: "), HasSubstr("no certificate in PEM")));
  certificates_.make("other");
  EXPECT_THAT(refusal({crt, certificates_.path("other.key"), ""}),
              AllOf(HasSubstr(certificates_.path("other.key")),
                    HasSubstr("not the key of the certificate in " + crt)));
  const std::string locked = certificates_.path("locked.key");
  const std::string command =
      "openssl ec -aes128 -passout pass:secret -in " + key + " -out " + locked + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(refusal({crt, locked, ""}), HasSubstr("without a password"));
}

// It counts as a connection that waits for its request, and has as long.
TEST_F(HttpTls, AHandshakeThatNeverEndsIsCutOff) {
  const auto server = serve(files());
  ASSERT_TRUE(server);
  TestClient silent((*server)->address());
  TestClient half((*server)->address());
  half.send(std::string("\x16\x03\x01\x02\x00\x01", 6));  // begins as TLS does
  EXPECT_EQ(silent.receive_all() + half.receive_all(), "");
  EXPECT_FALSE(silent.timed_out() || half.timed_out()) << "still open";
}

}  // namespace
}  // namespace tocsin::app
