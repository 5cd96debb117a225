// The health server: real sockets on loopback, port 0.
#include "app/serve/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string ask(const std::string& address, const std::string& request) {
  const std::size_t colon = address.rfind(':');
  std::uint16_t port = 0;
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return answer;
}

class Http : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = HttpServer::start(
        {"127.0.0.1:0", {}},
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
                     true, true}}),
        log_);
    ASSERT_TRUE(made) << made.error().message;
    server_ = std::move(*made);
  }
  std::string get(const std::string& line) {
    return ask(server_->address(), line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  core::NullLog log_;
  std::promise<void> let_go_;  // of the slow page
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Http, APageThatWaitsHoldsUpNoOther) {
  std::string slow;
  std::thread asking([&] { slow = get("GET /slow/a%20b"); });
  for (int i = 0; i < 20; ++i) EXPECT_THAT(get("GET /hello"), StartsWith("HTTP/1.1 200"));
  let_go_.set_value();
  asking.join();
  EXPECT_THAT(slow, HasSubstr("\r\n\r\na b\n"));
}

TEST_F(Http, ServesWhatTheHandlerSays) {
  const auto answer = get("GET /hello?x=1");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nhi x=1\n"));
}

TEST_F(Http, AnswersHeadWithoutABody) {
  const auto answer = get("HEAD /hello");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 4"));
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_F(Http, AnotherMethodIsRefusedWithTheAllowedOnes) {
  const auto answer = get("POST /hello");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(answer, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_THAT(get("GET /echo"), HasSubstr("\r\nAllow: POST\r\n"));
  EXPECT_THAT(get("GET /hello"), Not(HasSubstr("Allow:")));
}

TEST_F(Http, TheHandlerGetsTheBody) {
  const auto answer = ask(server_->address(),
                          "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                          "Content-Length: 4\r\n\r\nabcd");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 201"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nabcd"));
}

TEST_F(Http, KeepsServingAfterGarbage) {
  ask(server_->address(), "\x01\x02garbage\r\n\r\n");
  EXPECT_THAT(get("GET /nowhere"), StartsWith("HTTP/1.1 404"));
}

// Opens a connection and leaves its request half sent.
int half_open(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::uint16_t port = 0;
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  constexpr std::string_view kHalf = "GET /hello HTTP/1.1\r\nHost:";
  EXPECT_EQ(::send(fd, kHalf.data(), kHalf.size(), 0), static_cast<ssize_t>(kHalf.size()));
  return fd;
}

bool is_closed(int fd) {
  char byte = 0;
  timeval soon{2, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
  const ssize_t got = ::recv(fd, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

TEST(HttpConnections, TheOneThatWaitedLongestMakesRoomAndRequestsAreAnswered) {
  core::NullLog log;
  auto server = HttpServer::start({"127.0.0.1:0", {}},
                                  HttpRoutes({{"GET", "/hello", "text/plain",
                                               [](const HttpRequest&) {
                                                 return HttpAnswer{200, "hi\n"};
                                               }}}),
                                  log);
  ASSERT_TRUE(server);
  const std::string& address = (*server)->address();
  std::vector<int> open;
  for (int i = 0; i < 132; ++i) open.push_back(half_open(address));
  EXPECT_THAT(ask(address, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(is_closed(open[static_cast<std::size_t>(i)])) << i;
  // The newest still wait, and finish.
  constexpr std::string_view kRest = " x\r\nConnection: close\r\n\r\n";
  ::send(open.back(), kRest.data(), kRest.size(), 0);
  char buffer[12];
  EXPECT_EQ(::recv(open.back(), buffer, sizeof buffer, MSG_WAITALL), 12);
  EXPECT_EQ(std::string_view(buffer, 12), "HTTP/1.1 200");
  for (const int fd : open) ::close(fd);
}

TEST_F(Http, SaysWhichPortIsTaken) {
  const auto second = HttpServer::start({server_->address(), {}}, HttpRoutes({}), log_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::Code::failed_precondition);
  EXPECT_THAT(second.error().message, HasSubstr(server_->address()));
  EXPECT_THAT(second.error().message, HasSubstr("by pid " + std::to_string(getpid()) + " ("));
}

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
