// The health server: real sockets on loopback, port 0.
#include "app/serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "tests/unit/app/http_client.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A stream of three words, each asked for by hand.
class Words final : public HttpStream {
 public:
  void attach(std::function<void()> wake) override {
    const core::MutexLock lock(mutex_);
    wake_ = std::move(wake);
    attached_ = true;
    changed_.notify_all();
  }
  void detach() override {
    const core::MutexLock lock(mutex_);
    wake_ = {};
    attached_ = false;
    changed_.notify_all();
  }
  Piece take() override {
    const core::MutexLock lock(mutex_);
    return std::exchange(next_, {});
  }
  [[nodiscard]] std::string idle() const override { return ": still here\n"; }
  [[nodiscard]] std::chrono::milliseconds idle_after() const override {
    return std::chrono::milliseconds(100);
  }
  void say(const std::string& text, bool last = false) {
    const core::MutexLock lock(mutex_);
    next_ = {text, last};
    if (wake_) wake_();
  }
  bool becomes(bool attached) {
    const core::MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, std::chrono::seconds(10),
                             [&]() REQUIRES(mutex_) { return attached_ == attached; });
  }

 private:
  core::Mutex mutex_;
  core::CondVar changed_;
  std::function<void()> wake_ GUARDED_BY(mutex_);
  Piece next_ GUARDED_BY(mutex_);
  bool attached_ GUARDED_BY(mutex_) = false;
};

enum class Spoken { clear, tls };

// Everything holds in clear and over TLS.
class Http : public ::testing::TestWithParam<Spoken> {
 protected:
  void SetUp() override {
    HttpConfig config{"127.0.0.1:0", {}};
    if (GetParam() == Spoken::tls) {
      trusted_ = certificates_.path("server.crt");
      config.tls = TlsConfig{trusted_, certificates_.path("server.key"), ""};
    }
    auto made = HttpServer::start(
        config,
        HttpRoutes({{"GET", "/hello", "text/plain",
                     [](const HttpRequest& request) {
                       return HttpAnswer{200, "hi " + std::string(request.query) + "\n"};
                     }},
                    {"POST", "/echo", "text/plain",
                     [](const HttpRequest& request) {
                       return HttpAnswer{201, std::string(request.body)};
                     }},
                    {"GET", "/slow/{name}", "text/plain",
                     [this](const HttpRequest& request) {
                       let_go_.get_future().wait();
                       return HttpAnswer{200, request.in_path.find("name")->second + "\n"};
                     },
                     true, true},
                    {"GET", "/words", "text/event-stream",
                     [this](const HttpRequest&) {
                       return HttpAnswer{200, "", {}, {}, words_};
                     }}}),
        log_);
    ASSERT_TRUE(made) << made.error().message;
    server_ = std::move(*made);
  }
  std::string ask(const std::string& request) {
    return ask_once(server_->address(), request, trusted_);
  }
  std::string get(const std::string& line) {
    return ask(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  const TestCertificates certificates_;
  std::string trusted_;
  core::NullLog log_;
  std::promise<void> let_go_;  // of the slow page
  const std::shared_ptr<Words> words_ = std::make_shared<Words>();
  std::unique_ptr<HttpServer> server_;
};

TEST_P(Http, APageThatWaitsHoldsUpNoOther) {
  std::string slow;
  std::thread asking([&] { slow = get("GET /slow/a%20b"); });
  for (int i = 0; i < 20; ++i) EXPECT_THAT(get("GET /hello"), StartsWith("HTTP/1.1 200"));
  let_go_.set_value();
  asking.join();
  EXPECT_THAT(slow, HasSubstr("\r\n\r\na b\n"));
}

TEST_P(Http, ServesWhatTheHandlerSays) {
  const auto answer = get("GET /hello?x=1");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nhi x=1\n"));
}

TEST_P(Http, AnswersHeadWithoutABody) {
  const auto answer = get("HEAD /hello");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 4"));
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_P(Http, AnotherMethodIsRefusedWithTheAllowedOnes) {
  const auto answer = get("POST /hello");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(answer, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_THAT(get("GET /echo"), HasSubstr("\r\nAllow: POST\r\n"));
  EXPECT_THAT(get("GET /hello"), Not(HasSubstr("Allow:")));
}

TEST_P(Http, TheHandlerGetsTheBody) {
  const auto answer =
      ask("POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
          "Content-Length: 4\r\n\r\nabcd");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 201"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nabcd"));
}

TEST_P(Http, KeepsServingAfterGarbage) {
  ask("\x01\x02garbage\r\n\r\n");
  EXPECT_THAT(get("GET /nowhere"), StartsWith("HTTP/1.1 404"));
}

TEST_P(Http, TwoRequestsOfOneConnectionAreAnswered) {
  TestClient client(server_->address(), trusted_);
  client.send("GET /hello?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.receive_to("hi x=1\n"), StartsWith("HTTP/1.1 200"));
  client.send("GET /hello?x=2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.receive_all(), HasSubstr("hi x=2\n"));
}

TEST_P(Http, WhatIsTooLargeOrNoRequestIsToldSo) {
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask("GET /hello HTTP/1.1\r\nHost x\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

constexpr const char* kAskWords = "GET /words HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_P(Http, AStreamIsSentPieceByPieceAndSaysThatItIsThere) {
  TestClient client(server_->address(), trusted_);
  client.send(kAskWords);
  EXPECT_THAT(client.receive_to("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  ASSERT_TRUE(words_->becomes(true));
  words_->say("one\n");
  EXPECT_THAT(client.receive_to("one\n\r\n"), HasSubstr("4\r\none\n\r\n"));
  EXPECT_THAT(client.receive_to(": still here"), HasSubstr("d\r\n: still here\n\r\n"));
  words_->say("two\n", true);
  EXPECT_THAT(client.receive_all(), ::testing::EndsWith("4\r\ntwo\n\r\n0\r\n\r\n"));
  EXPECT_TRUE(words_->becomes(false)) << "nobody reads it any more";
}

TEST_P(Http, AStreamWhoseReaderLeavesIsLeft) {
  {
    TestClient client(server_->address(), trusted_);
    client.send(kAskWords);
    ASSERT_TRUE(words_->becomes(true));
  }
  EXPECT_TRUE(words_->becomes(false));
}

TEST_P(Http, AServerThatEndsEndsItsStreams) {
  TestClient client(server_->address(), trusted_);
  client.send(kAskWords);
  ASSERT_TRUE(words_->becomes(true));
  server_.reset();
  EXPECT_TRUE(words_->becomes(false));
  client.receive_all();  // comes to its end
  words_->say("nobody\n");
}

TEST_P(Http, StreamsTakeNoConnectionOfOtherRequests) {
  std::vector<std::unique_ptr<TestClient>> streams;
  for (int i = 0; i < 140; ++i) {
    streams.push_back(std::make_unique<TestClient>(server_->address(), trusted_));
    streams.back()->send(kAskWords);
    ASSERT_THAT(streams.back()->receive_to("\r\n\r\n"), StartsWith("HTTP/1.1 200")) << i;
  }
  EXPECT_THAT(get("GET /hello"), StartsWith("HTTP/1.1 200"));
  streams.front()->send("x");
  EXPECT_EQ(streams.front()->receive_to("0\r\n\r\n").find("0\r\n\r\n"), std::string::npos)
      << "who sends into a stream is cut off";
}

TEST_P(Http, TheOneThatWaitedLongestMakesRoomAndRequestsAreAnswered) {
  std::vector<std::unique_ptr<TestClient>> open;
  for (int i = 0; i < 132; ++i) {
    open.push_back(std::make_unique<TestClient>(server_->address(), trusted_));
    open.back()->send("GET /hello HTTP/1.1\r\nHost:");
  }
  EXPECT_THAT(get("GET /hello"), StartsWith("HTTP/1.1 200"));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(open[i]->receive(), "") << i;
  // The newest still wait, and finish.
  open.back()->send(" x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(open.back()->receive_all(), StartsWith("HTTP/1.1 200"));
}

TEST_P(Http, SaysWhichPortIsTaken) {
  const auto second = HttpServer::start({server_->address(), {}}, HttpRoutes({}), log_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::Code::failed_precondition);
  EXPECT_THAT(second.error().message, HasSubstr(server_->address()));
  EXPECT_THAT(second.error().message, HasSubstr("by pid " + std::to_string(getpid()) + " ("));
}

INSTANTIATE_TEST_SUITE_P(InClearAndOverTls, Http, ::testing::Values(Spoken::clear, Spoken::tls),
                         [](const auto& spoken) -> std::string {
                           return spoken.param == Spoken::tls ? "tls" : "clear";
                         });

TEST(HttpAddress, RefusesWhatIsNone) {
  core::NullLog log;
  for (const char* bad : {"localhost", "127.0.0.1:", "127.0.0.1:99999", "nowhere:1"}) {
    const auto made = HttpServer::start({bad, {}}, HttpRoutes({}), log);
    ASSERT_FALSE(made) << bad;
    EXPECT_EQ(made.error().code, core::Code::invalid_argument) << bad;
  }
}

}  // namespace
}  // namespace tocsin::app
