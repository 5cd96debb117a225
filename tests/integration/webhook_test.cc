// The webhook against real HTTP servers on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/integration/real_bench.h"
#include "tests/support/http_sink.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;
using tests::ChildProgram;

struct HookServer {
  HookServer()
      : program({"/usr/bin/python3", "tests/support/webhook_receiver.py", "--secret", kSecret}),
        port(program.port()) {}
  [[nodiscard]] std::string settings(const std::string& host = "127.0.0.1") const {
    return "{url: 'http://" + host + ":" + std::to_string(port) + "/hook', secret: " + kSecret +
           ", allow_private: [127.0.0.0/8], connect_timeout: 2s}";
  }
  json request() { return json::parse(program.line_with("{")); }
  ChildProgram program;
  int port;
};

TEST(RealWebhook, IsVerifiedByAnIndependentReceiver) {
  HookServer server;
  RealBench bench;
  const auto hook = bench.make("webhook", server.settings());
  const core::AttemptOutcome out = deliver_within(*hook, sample_notification(), 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  EXPECT_EQ(out.code, "200");
  const json seen = server.request();
  EXPECT_EQ(seen["verified"], true);
  EXPECT_EQ(seen["headers"]["webhook-id"], "ntf_one");
  EXPECT_EQ(seen["headers"]["content-type"], "application/cloudevents+json; charset=UTF-8");
  EXPECT_EQ(seen["json"]["data"]["issues"][0]["rule"], "exploding_tensor");
}

TEST(RealWebhook, UnderstandsEveryKindOfAnswer) {
  HookServer server;
  RealBench bench;
  const auto hook = bench.make("webhook", server.settings());
  const auto answered = [&](const std::string& answer) {
    server.program.say("answer " + answer);
    // The answer is taken from standard input by another thread: ask until it is there.
    for (int i = 0; i < 200; ++i) {
      const core::AttemptOutcome out = deliver_within(*hook, sample_notification(), 10s);
      (void)server.request();  // it tells of every request: unread, its pipe would fill and it hang
      if (out.outcome != OutcomeClass::delivered) return out;
    }
    return core::AttemptOutcome{};
  };
  EXPECT_EQ(answered("500").outcome, OutcomeClass::transient);
  EXPECT_EQ(answered("503").outcome, OutcomeClass::transient);
  EXPECT_EQ(answered("404").outcome, OutcomeClass::configuration);
  EXPECT_EQ(answered("410").outcome, OutcomeClass::gone);
  EXPECT_EQ(answered("422").outcome, OutcomeClass::bad_payload);
  EXPECT_EQ(answered("302").outcome, OutcomeClass::bad_payload);
  const core::AttemptOutcome throttled = answered("429 1 7");
  EXPECT_EQ(throttled.outcome, OutcomeClass::throttled);
  EXPECT_EQ(throttled.retry_after, 7s);
  EXPECT_EQ(answered("503 1 3").retry_after, 3s);
}

TEST(RealWebhook, AReceiverThatHangsCostsTheBudgetAndNoMore) {
  HookServer server;
  RealBench bench;
  const auto hook = bench.make("webhook", server.settings());
  server.program.say("hang 1000");
  core::AttemptOutcome out;
  for (int i = 0; i < 200 && out.outcome == OutcomeClass::delivered; ++i) {
    const auto took =
        elapsed_of([&] { out = deliver_within(*hook, sample_notification(), 300ms); });
    EXPECT_LT(took, 5s);
  }
  EXPECT_EQ(out.outcome, OutcomeClass::unknown);
  EXPECT_EQ(out.code, "no_answer");
}

TEST(RealWebhook, ConnectionsAreKeptPerIntegrationAndThread) {
  tests::HttpSink sink;
  RealBench bench;
  const std::string settings = "{url: '" + sink.url() + "', allow_private: [127.0.0.0/8]}";
  const auto one = bench.make("webhook", settings);
  const auto two = bench.make("webhook", settings);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(deliver_within(*one, sample_notification(), 5s).outcome, OutcomeClass::delivered);
  }
  EXPECT_EQ(sink.connections(), 1u);
  EXPECT_EQ(deliver_within(*two, sample_notification(), 5s).outcome, OutcomeClass::delivered);
  EXPECT_EQ(sink.connections(), 2u);  // never through what another integration opened
  EXPECT_EQ(sink.requests(), 6u);
}

TEST(RealWebhook, AConnectionThatTheFarSideClosedIsMadeAgain) {
  RealBench bench;
  auto sink = std::make_unique<tests::HttpSink>();
  const std::string settings = "{url: '" + sink->url() + "', allow_private: [127.0.0.0/8]}";
  const auto hook = bench.make("webhook", settings);
  EXPECT_EQ(deliver_within(*hook, sample_notification(), 5s).outcome, OutcomeClass::delivered);
  sink->drop_connections();
  EXPECT_EQ(deliver_within(*hook, sample_notification(), 5s).outcome, OutcomeClass::delivered);
  EXPECT_EQ(sink->connections(), 2u);
}

TEST(RealWebhook, ARefusedConnectionIsTransient) {
  RealBench bench;
  std::string settings;
  {
    HookServer server;
    settings = server.settings();
  }
  const auto hook = bench.make("webhook", settings);
  const core::AttemptOutcome out = deliver_within(*hook, sample_notification(), 5s);
  EXPECT_EQ(out.outcome, OutcomeClass::transient);
  EXPECT_EQ(out.code, "unreachable");
}

TEST(RealWebhook, ANameThatLeadsToThisMachineIsBlockedUnlessItsNetworkIsNamed) {
  HookServer server;
  RealBench bench;
  const std::string url = "'http://localhost:" + std::to_string(server.port) + "/'";
  const auto blocked = bench.make("webhook", "{url: " + url + "}");
  const core::AttemptOutcome out = deliver_within(*blocked, sample_notification(), 5s);
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_EQ(out.code, "address_blocked");
  EXPECT_THAT(out.detail, HasSubstr("allow_private"));
  const auto allowed = bench.make("webhook", "{url: " + url + ", secret: " + std::string(kSecret) +
                                                 ", allow_private: ['127.0.0.0/8', '::1']}");
  EXPECT_EQ(deliver_within(*allowed, sample_notification(), 5s).outcome, OutcomeClass::delivered);
  EXPECT_EQ(server.request()["verified"], true);
}

TEST(RealWebhook, TrustsOnlyCertificatesOfItsAuthorities) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("tocsin-tls-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string cert = folder / "cert.pem";
  const std::string key = folder / "key.pem";
  ChildProgram make({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days",
                     "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"});
  ASSERT_EQ(make.wait(), 0);
  ChildProgram server({"stdbuf", "-oL", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                       cert, "-key", key, "-www"});
  const std::string accepting = server.line_with("ACCEPT 127.0.0.1:");
  const std::string url = "'https://127.0.0.1:" + accepting.substr(17) + "/'";
  RealBench bench;
  const auto stranger = bench.make("webhook", "{url: " + url + ", allow_private: [127.0.0.0/8]}");
  const core::AttemptOutcome refused = deliver_within(*stranger, sample_notification(), 5s);
  EXPECT_EQ(refused.outcome, OutcomeClass::configuration) << refused.detail;
  EXPECT_EQ(refused.code, "certificate");
  const auto known = bench.make(
      "webhook", "{url: " + url + ", allow_private: [127.0.0.0/8], tls: {ca_file: " + cert + "}}");
  const core::AttemptOutcome out = deliver_within(*known, sample_notification(), 5s);
  EXPECT_NE(out.code, "certificate") << out.detail;
  std::filesystem::remove_all(folder);
}

// Lanes and action together, in real time: what a deliverer does.
TEST(RealWebhook, ComesThroughAServerThatFailsAndThrottlesWithTheSameIdAndBody) {
  HookServer server;
  server.program.say("answer 500");
  server.program.say("answer 429 1 1");
  RealBench bench;
  const auto hook = bench.make("webhook", server.settings());
  CommonConfig common;
  common.retry.initial = 50ms;
  core::NullTelemetry telemetry;
  DeliveryLanes lanes(
      {{"oncall/webhook", common, {true, false, true}}}, [] { return 0.5; }, telemetry);
  // One message of its own first, so that the script has been read.
  std::vector<json> seen;
  auto notification = sample_notification();
  notification.decided_at = bench.real_clock.now();
  notification.rendered = *hook->render(notification);
  lanes.enqueue(notification, bench.real_clock.now());
  std::vector<core::Delivery> records;
  const auto begin = bench.real_clock.monotonic();
  while ((records.empty() || records.back().state == core::DeliveryState::pending) &&
         bench.real_clock.monotonic() - begin < 20s) {
    if (const auto attempt = lanes.next(bench.real_clock.now())) {
      const auto out = hook->execute(*attempt->notification, attempt->number, attempt->budget);
      lanes.finished(*attempt, out, bench.real_clock.now());
      seen.push_back(server.request());
      for (auto& record : lanes.take().deliveries) records.push_back(std::move(record));
    } else if (const auto next = lanes.next_deadline(bench.real_clock.now())) {
      std::this_thread::sleep_until(std::chrono::steady_clock::now() +
                                    (*next - bench.real_clock.now()));
    }
  }
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.back().state, core::DeliveryState::delivered);
  for (const json& request : seen) {
    EXPECT_EQ(request["headers"]["webhook-id"], "ntf_one");
    EXPECT_EQ(request["body"], seen[0]["body"]);
    EXPECT_EQ(request["verified"], true);
  }
  for (std::size_t i = 0; i + 1 < records.size(); ++i) {
    if (records[i].outcome != OutcomeClass::throttled) continue;
    EXPECT_GE(records[i + 1].stages.sent - records[i].stages.answered, 1s);
  }
}

TEST(RealWebhook, GoesThroughAProxyThatKnowsTheName) {
  HookServer server;
  ChildProgram proxy(
      {"/usr/bin/python3", "tests/support/connect_proxy.py", "--user", "u:opensesame"});
  const std::string proxy_port = std::to_string(proxy.port());
  RealBench bench;
  const auto through = [&](const std::string& password) {
    const std::string url = "http://hooks.invalid:" + std::to_string(server.port) + "/hook";
    const std::string by = "http://u:" + password + "@127.0.0.1:" + proxy_port;
    const auto hook =
        bench.make("webhook", "{url: '" + url + "', secret: " + kSecret + ", proxy: '" + by + "'}");
    return deliver_within(*hook, sample_notification(), 10s);
  };
  const core::AttemptOutcome right = through("opensesame");
  EXPECT_EQ(right.outcome, OutcomeClass::delivered) << right.code << right.detail;
  EXPECT_EQ(server.request()["verified"], true);
  const core::AttemptOutcome wrong = through("wrong-canary");
  EXPECT_EQ(wrong.outcome, OutcomeClass::configuration) << wrong.code << wrong.detail;
  EXPECT_EQ(wrong.detail.find("canary"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::actions
