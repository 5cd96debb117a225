// publish_metric against the real Prometheus and Pushgateway of Debian, and a real UDP socket.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/real_bench.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;
using tests::ChildProgram;

/// A socket on loopback that has a port, which nobody else gets while it lives.
class PortHolder {
 public:
  explicit PortHolder(int type) : fd_(socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    if (fd_ < 0 || bind(fd_, address, size) != 0 || getsockname(fd_, address, &size) != 0) {
      throw std::runtime_error("no port");
    }
    port_ = ntohs(here.sin_port);
  }
  ~PortHolder() { close(fd_); }
  PortHolder(const PortHolder&) = delete;
  PortHolder& operator=(const PortHolder&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

int port_of_nobody() { return PortHolder(SOCK_STREAM).port(); }

/// A server with an HTTP API, which is ready once its constructor is done.
class MetricServer {
 public:
  MetricServer(const std::function<std::vector<std::string>(int port)>& command)
      : port_(port_of_nobody()), program_(command(port_)) {
    for (int i = 0; i < 600 && get("/-/ready").status != 200; ++i) {
      std::this_thread::sleep_for(50ms);
    }
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  HttpResponse get(const std::string& path) {
    HttpRequest request;
    request.method = "GET";
    request.url = url() + path;
    request.guard = *AddressGuard::create({"127.0.0.0/8"});
    return http_->send(request).response;
  }

 private:
  std::unique_ptr<HttpClient> http_ = curl_http_client();
  int port_;
  ChildProgram program_;
};

std::string pushing_to(const std::string& transport, const std::string& url) {
  return "{transport: " + transport + ", url: '" + url + "', allow_private: [127.0.0.0/8]}";
}

core::Notification of_odd_job(core::NotificationKind kind = core::NotificationKind::open) {
  auto out = sample_notification("ntf", kind);
  out.issues[0].issue.labels.set("job", "llm/7 \"b\"");
  return out;
}

TEST(RealPrometheus, TakesSeriesAndTheirEnd) {
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      ("tocsin-prometheus-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "prometheus.yml") << "global: {}\n";
  {
    MetricServer prometheus([&](int port) -> std::vector<std::string> {
      return {"prometheus",
              "--config.file=" + (folder / "prometheus.yml").string(),
              "--storage.tsdb.path=" + (folder / "tsdb").string(),
              "--web.enable-remote-write-receiver",
              "--log.level=error",
              "--web.listen-address=127.0.0.1:" + std::to_string(port)};
    });
    // As of a moment from now: a second push within one millisecond has the time of the next.
    const auto active = [&] {
      const std::string soon = std::to_string(std::time(nullptr) + 2);
      const std::string text =
          prometheus.get("/api/v1/query?query=tocsin_issue_active&time=" + soon).body;
      return json::parse(text)["data"]["result"];
    };
    RealBench bench;
    const auto action = bench.make("publish_metric", pushing_to("remote_write", prometheus.url()));
    const core::AttemptOutcome out = deliver_within(*action, of_odd_job(), 10s);
    ASSERT_EQ(out.outcome, OutcomeClass::delivered) << out.code << " " << out.detail;
    const json firing = active();
    ASSERT_EQ(firing.size(), 1u);
    EXPECT_EQ(firing[0]["metric"]["job"], "llm/7 \"b\"");
    EXPECT_EQ(firing[0]["value"][1], "1");
    ASSERT_EQ(deliver_within(*action, of_odd_job(core::NotificationKind::close), 10s).outcome,
              OutcomeClass::delivered);
    EXPECT_EQ(active()[0]["value"][1], "0");
    // A test message ends its series by a stale marker.
    const Loaded loaded = load(
        "receivers: {a: {publish_metric: " + pushing_to("remote_write", prometheus.url()) + "}}\n");
    bench.environment.issue_metrics = nullptr;
    TrialOptions drill;
    drill.drill = true;
    const Trial trial =
        try_integration(loaded.receivers.integrations.at(0), bench.environment, drill);
    EXPECT_TRUE(trial.passed());
    EXPECT_EQ(active().size(), 1u);
    EXPECT_THAT(prometheus
                    .get("/api/v1/query?query=count_over_time(tocsin_issue_active%5B1m%5D)&time=" +
                         std::to_string(std::time(nullptr) + 2))
                    .body,
                HasSubstr("\"test\":\"true\""))
        << "it was there";
  }
  std::filesystem::remove_all(folder);
}

TEST(RealPushgateway, HasAGroupUntilItIsDeleted) {
  MetricServer gateway([](int port) -> std::vector<std::string> {
    return {"prometheus-pushgateway", "--log.level=error",
            "--persistence.file=", "--web.listen-address=127.0.0.1:" + std::to_string(port)};
  });
  RealBench bench;
  const auto action = bench.make("publish_metric", pushing_to("pushgateway", gateway.url()));
  const core::AttemptOutcome out = deliver_within(*action, of_odd_job(), 10s);
  ASSERT_EQ(out.outcome, OutcomeClass::delivered) << out.code << " " << out.detail;
  EXPECT_THAT(gateway.get("/metrics").body,
              HasSubstr("tocsin_issue_active{cluster=\"c1\",instance=\"\",job=\"llm/7 "
                        "\\\"b\\\"\",rule=\"exploding_tensor\",severity=\"error\"} 1"));
  ASSERT_EQ(deliver_within(*action, of_odd_job(core::NotificationKind::close), 10s).outcome,
            OutcomeClass::delivered);
  EXPECT_THAT(gateway.get("/metrics").body, HasSubstr("severity=\"error\"} 0"));
  const Loaded loaded =
      load("receivers: {a: {publish_metric: " + pushing_to("pushgateway", gateway.url()) + "}}\n");
  bench.environment.issue_metrics = nullptr;
  bench.environment.cluster = "trial";
  TrialOptions drill;
  drill.drill = true;
  const Trial trial =
      try_integration(loaded.receivers.integrations.at(0), bench.environment, drill);
  EXPECT_TRUE(trial.passed());
  ASSERT_EQ(trial.steps.size(), 2u);
  EXPECT_THAT(trial.steps[1].exchanges.back().request, HasSubstr("DELETE"));
  EXPECT_THAT(gateway.get("/metrics").body, Not(HasSubstr("cluster=\"trial\"")));
}

TEST(RealStatsd, ArrivesAtASocket) {
  const PortHolder server(SOCK_DGRAM);
  RealBench bench;
  const auto action =
      bench.make("publish_metric",
                 "{transport: statsd, address: '127.0.0.1:" + std::to_string(server.port()) + "'}");
  const core::AttemptOutcome out = deliver_within(*action, sample_notification(), 5s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  EXPECT_FALSE(out.confirmed);
  std::string bytes(65536, '\0');
  const ssize_t count = recv(server.fd(), bytes.data(), bytes.size(), 0);
  ASSERT_GT(count, 0);
  EXPECT_THAT(bytes.substr(0, static_cast<std::size_t>(count)),
              HasSubstr("tocsin_issue_active:1|g|#cluster:c1,job:digits,rule:exploding_tensor"));
}

}  // namespace
}  // namespace tocsin::actions
