// Actions against real servers: HTTP, SMTP and MQTT on loopback, and processes of this machine.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/child_program.h"
#include "tests/support/http_sink.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;
using tests::ChildProgram;

class SteadyClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override {
    return std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  }
  [[nodiscard]] core::Duration monotonic() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

// The real adapters instead of the fakes, and the real time.
struct RealBench : Workbench {
  RealBench() {
    environment.http = nullptr;
    environment.mailer = nullptr;
    environment.mqtt = nullptr;
    environment.clock = &real_clock;
  }
  SteadyClock real_clock;
};

core::Duration elapsed_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::steady_clock::now() - begin;
}

core::Outcome deliver_within(core::Action& action, core::Notification notification,
                             std::chrono::milliseconds budget) {
  notification.rendered = *action.render(notification);
  return action.execute(notification, 1, budget);
}

// ---- webhook

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
  const core::Outcome out = deliver_within(*hook, sample_notification(), 10s);
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
      const core::Outcome out = deliver_within(*hook, sample_notification(), 10s);
      (void)server.request();  // it tells of every request: unread, its pipe would fill and it hang
      if (out.outcome != OutcomeClass::delivered) return out;
    }
    return core::Outcome{};
  };
  EXPECT_EQ(answered("500").outcome, OutcomeClass::transient);
  EXPECT_EQ(answered("503").outcome, OutcomeClass::transient);
  EXPECT_EQ(answered("404").outcome, OutcomeClass::configuration);
  EXPECT_EQ(answered("410").outcome, OutcomeClass::gone);
  EXPECT_EQ(answered("422").outcome, OutcomeClass::bad_payload);
  EXPECT_EQ(answered("302").outcome, OutcomeClass::bad_payload);
  const core::Outcome throttled = answered("429 1 7");
  EXPECT_EQ(throttled.outcome, OutcomeClass::throttled);
  EXPECT_EQ(throttled.retry_after, 7s);
  EXPECT_EQ(answered("503 1 3").retry_after, 3s);
}

TEST(RealWebhook, AReceiverThatHangsCostsTheBudgetAndNoMore) {
  HookServer server;
  RealBench bench;
  const auto hook = bench.make("webhook", server.settings());
  server.program.say("hang 1000");
  core::Outcome out;
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
  const core::Outcome out = deliver_within(*hook, sample_notification(), 5s);
  EXPECT_EQ(out.outcome, OutcomeClass::transient);
  EXPECT_EQ(out.code, "unreachable");
}

TEST(RealWebhook, ANameThatLeadsToThisMachineIsBlockedUnlessItsNetworkIsNamed) {
  HookServer server;
  RealBench bench;
  const std::string url = "'http://localhost:" + std::to_string(server.port) + "/'";
  const auto blocked = bench.make("webhook", "{url: " + url + "}");
  const core::Outcome out = deliver_within(*blocked, sample_notification(), 5s);
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
  const core::Outcome refused = deliver_within(*stranger, sample_notification(), 5s);
  EXPECT_EQ(refused.outcome, OutcomeClass::configuration) << refused.detail;
  EXPECT_EQ(refused.code, "certificate");
  const auto known = bench.make(
      "webhook", "{url: " + url + ", allow_private: [127.0.0.0/8], tls: {ca_file: " + cert + "}}");
  const core::Outcome out = deliver_within(*known, sample_notification(), 5s);
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

// ---- email

struct MailServer {
  MailServer()
      : program({"/usr/bin/python3", "tests/support/smtp_receiver.py"}), port(program.port()) {}
  [[nodiscard]] std::string settings() const {
    return "{to: [ops@example.com, ada@example.org], from: tocsin@example.net, host: 127.0.0.1, "
           "port: " +
           std::to_string(port) + ", tls: none, connect_timeout: 2s}";
  }
  json mail() { return json::parse(program.line_with("{")); }
  ChildProgram program;
  int port;
};

TEST(RealEmail, ArrivesReadableAndThreaded) {
  MailServer server;
  RealBench bench;
  const auto email = bench.make("email", server.settings());
  auto first = sample_notification();
  first.issues[0].issue.summary = "Größe: " + std::string(300, 'x') + "\n.\nende";
  const core::Outcome out = deliver_within(*email, first, 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  const json mail = server.mail();
  EXPECT_EQ(mail["subject"], "[FIRING:1 error] exploding_tensor digits");
  EXPECT_THAT(mail["to"].get<std::vector<std::string>>(),
              ElementsAre("ops@example.com", "ada@example.org"));
  EXPECT_EQ(mail["headers"]["message-id"], "<ntf_one@example.net>");
  EXPECT_EQ(mail["headers"]["auto-submitted"], "auto-generated");
  EXPECT_THAT(mail["body"].get<std::string>(), HasSubstr("Größe: " + std::string(300, 'x')));
  EXPECT_THAT(mail["body"].get<std::string>(), HasSubstr("step 412 (train)"));

  auto close = sample_notification("ntf_two", core::NotificationKind::close);
  close.handles = out.handles;
  EXPECT_EQ(deliver_within(*email, close, 10s).outcome, OutcomeClass::delivered);
  const json reply = server.mail();
  EXPECT_EQ(reply["headers"]["in-reply-to"], "<ntf_one@example.net>");
  EXPECT_EQ(reply["headers"]["references"], "<ntf_one@example.net>");
}

TEST(RealEmail, TellsLaterFromNever) {
  MailServer server;
  RealBench bench;
  const auto email = bench.make("email", server.settings());
  const auto answered = [&](const std::string& answer, std::chrono::milliseconds budget = 10s) {
    server.program.say(answer);
    for (int i = 0; i < 200; ++i) {
      const core::Outcome out = deliver_within(*email, sample_notification(), budget);
      if (out.outcome != OutcomeClass::delivered) return out;
    }
    return core::Outcome{};
  };
  const core::Outcome later = answered("answer 451");
  EXPECT_EQ(later.outcome, OutcomeClass::transient);
  EXPECT_EQ(later.code, "smtp 451");
  const core::Outcome never = answered("answer 554");
  EXPECT_EQ(never.outcome, OutcomeClass::bad_payload);
  EXPECT_EQ(never.code, "smtp 554");
  const core::Outcome silent = answered("hang 1000", 1500ms);  // after the final dot
  EXPECT_EQ(silent.outcome, OutcomeClass::unknown);
}

TEST(RealEmail, ARefusedConnectionIsTransient) {
  std::string settings;
  {
    MailServer server;
    settings = server.settings();
  }
  RealBench bench;
  const auto email = bench.make("email", settings);
  EXPECT_EQ(deliver_within(*email, sample_notification(), 5s).outcome, OutcomeClass::transient);
}

// An SMTP server that answers one session as told: what aiosmtpd cannot be made to say.
class ScriptedSmtp {
 public:
  using Answers = std::vector<std::pair<std::string, std::string>>;
  explicit ScriptedSmtp(Answers answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener_, 1);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedSmtp() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  [[nodiscard]] std::uint32_t port() const { return port_; }

 private:
  void serve() {
    const int peer = accept(listener_, nullptr, nullptr);
    if (peer < 0) return;
    say(peer, "220 test\r\n");
    std::string buffer;
    char bytes[4096];
    bool data = false;
    for (ssize_t count = 0; (count = ::read(peer, bytes, sizeof bytes)) > 0;) {
      buffer.append(bytes, static_cast<std::size_t>(count));
      for (auto end = buffer.find("\r\n"); end != std::string::npos; end = buffer.find("\r\n")) {
        const std::string line = buffer.substr(0, end);
        buffer.erase(0, end + 2);
        if (data && line != ".") continue;
        say(peer, data ? "250 taken\r\n" : answer(line));
        data = !data && line == "DATA";
      }
    }
    close(peer);
  }
  std::string answer(const std::string& line) const {
    for (const auto& [beginning, text] : answers_) {
      if (line.starts_with(beginning)) return text;
    }
    if (line == "DATA") return "354 go on\r\n";
    return "250 ok\r\n";
  }
  static void say(int peer, const std::string& text) {
    (void)!::write(peer, text.data(), text.size());
  }

  std::vector<std::pair<std::string, std::string>> answers_;
  int listener_ = -1;
  std::uint32_t port_ = 0;
  std::thread thread_;
};

Mail mail_to(std::uint32_t port) {
  Mail mail;
  mail.host = "127.0.0.1";
  mail.port = port;
  mail.tls = MailTls::none;
  mail.helo = "h1";
  mail.from = "tocsin@example.net";
  mail.to = {"ops@example.com", "ada@example.org"};
  mail.message = "Subject: x\r\n\r\nbody\r\n";
  mail.timeout = 5s;
  return mail;
}

TEST(RealMailer, NamesTheRecipientThatWasRefused) {
  ScriptedSmtp server(ScriptedSmtp::Answers{{"RCPT TO:<ada", "550 5.1.1 no such user\r\n"}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::none) << result.detail;
  EXPECT_THAT(result.refused, ElementsAre(std::pair<std::string, int>("ada@example.org", 550)));
}

TEST(RealMailer, ASenderThatIsRefusedIsRefusedForAll) {
  ScriptedSmtp server(ScriptedSmtp::Answers{{"MAIL FROM", "452 4.3.1 no space\r\n"}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::refused);
  EXPECT_EQ(result.code, 452);
  EXPECT_EQ(classify(result).outcome, OutcomeClass::transient);
}

TEST(RealMailer, AllRecipientsRefusedIsNoDelivery) {
  ScriptedSmtp server(ScriptedSmtp::Answers{{"RCPT TO", "450 4.2.1 later\r\n"}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::refused);
  EXPECT_EQ(result.refused.size(), 2u);
}

TEST(RealMailer, AWrongPasswordIsALoginFailureAndIsNotRepeatedInItsWords) {
  ScriptedSmtp server(
      {{"EHLO", "250-test\r\n250 AUTH PLAIN LOGIN\r\n"}, {"AUTH", "535 5.7.8 no\r\n"}});
  Mail mail = mail_to(server.port());
  mail.username = "u";
  mail.password = "canary-pw";
  const MailResult result = curl_mailer()->send(mail);
  EXPECT_EQ(result.failure, MailFailure::login) << result.detail;
  EXPECT_EQ(result.code, 535);
  EXPECT_THAT(result.detail, Not(HasSubstr("canary")));
}

TEST(RealMailer, SendsNothingWhenTlsIsRequiredAndNotOffered) {
  ScriptedSmtp server(ScriptedSmtp::Answers{});
  Mail mail = mail_to(server.port());
  mail.tls = MailTls::starttls_required;
  EXPECT_EQ(curl_mailer()->send(mail).failure, MailFailure::tls);
}

// ---- mqtt

struct Broker {
  explicit Broker(int wanted = 0)
      : program(
            {"/usr/bin/python3", "tests/support/mosquitto.py", "--port", std::to_string(wanted)}),
        port(program.port()) {}
  ChildProgram program;
  int port;
};

struct Subscriber {
  Subscriber(int port, const std::string& topic)
      : program({"stdbuf", "-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", std::to_string(port),
                 "-V", "5", "-t", topic, "-q", "1", "-F", "%j", "-d"}) {
    program.line_with("Subscribed");
  }
  json message() { return json::parse(program.line_with("{")); }
  ChildProgram program;
};

std::string mqtt_settings(int port, const std::string& more = "") {
  return "{host: 127.0.0.1, port: " + std::to_string(port) + ", topic: 'training/{job}/{rule}'" +
         more + "}";
}

TEST(RealMqtt, IsAcknowledgedAndReachesASubscriber) {
  Broker broker;
  Subscriber subscriber(broker.port, "training/#");
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(broker.port));
  const core::Outcome out = deliver_within(*mqtt, sample_notification(), 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  EXPECT_EQ(out.code, "puback 0x00");
  const json message = subscriber.message();
  EXPECT_EQ(message["topic"], "training/digits/exploding_tensor");
  EXPECT_EQ(message["qos"], 1);
  const json payload = message["payload"].is_string()
                           ? json::parse(message["payload"].get<std::string>())
                           : message["payload"];
  EXPECT_EQ(payload["issues"][0]["rule"], "exploding_tensor");
}

TEST(RealMqtt, SaysWhenNobodyListensAndKeepsARetainedState) {
  Broker broker;
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(broker.port, ", retain: true, qos: 2"));
  const core::Outcome out = deliver_within(*mqtt, sample_notification(), 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  EXPECT_THAT(out.code, HasSubstr("pubcomp"));
  Subscriber late(broker.port, "training/#");
  EXPECT_EQ(late.message()["retain"], 1);
}

TEST(RealMqtt, SurvivesABrokerThatIsRestartedInTheMiddle) {
  auto broker = std::make_unique<Broker>();
  const int port = broker->port;
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(port));
  EXPECT_EQ(deliver_within(*mqtt, sample_notification(), 10s).outcome, OutcomeClass::delivered);
  broker.reset();
  const core::Outcome down = deliver_within(*mqtt, sample_notification("ntf_two"), 500ms);
  EXPECT_TRUE(down.outcome == OutcomeClass::transient || down.outcome == OutcomeClass::unknown);
  broker = std::make_unique<Broker>(port);
  Subscriber subscriber(port, "training/#");
  EXPECT_EQ(deliver_within(*mqtt, sample_notification("ntf_two"), 20s).outcome,
            OutcomeClass::delivered);
  EXPECT_EQ(subscriber.message()["topic"], "training/digits/exploding_tensor");
}

TEST(RealMqtt, AnnouncesItselfAndSaysGoodbye) {
  Broker broker;
  Subscriber subscriber(broker.port, "status/#");
  RealBench bench;
  {
    const auto mqtt =
        bench.make("mqtt", mqtt_settings(broker.port, ", status_topic: status/tocsin"));
    EXPECT_EQ(subscriber.message()["payload"], "online");
  }
  EXPECT_EQ(subscriber.message()["payload"], "offline");
}

TEST(RealMqtt, ABrokerThatIsNotThereIsTransientWithinTheBudget) {
  int port = 0;
  {
    Broker broker;
    port = broker.port;
  }
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(port));
  core::Outcome out;
  EXPECT_LT(elapsed_of([&] { out = deliver_within(*mqtt, sample_notification(), 300ms); }), 5s);
  EXPECT_EQ(out.outcome, OutcomeClass::transient);
  EXPECT_THAT(out.detail, HasSubstr("cannot connect"));
}

// ---- processes

ChildProgram sleeper(bool ignores_sigterm = false) {
  return ChildProgram({"/bin/sh", "-c",
                       std::string(ignores_sigterm ? "trap '' TERM; " : "") +
                           "echo ready; while :; do read line || exit 3; done"});
}

TEST(RealProcess, IsHeldSignalledAndSeenToEnd) {
  auto child = sleeper();
  child.line_with("ready");
  const auto fence = fence_of(child.pid(), "h1");
  ASSERT_TRUE(fence);
  EXPECT_GT(fence->pid_start, 0u);
  EXPECT_EQ(fence->boot_id.size(), 36u);
  auto process = LocalProcess::open(*fence, "h1");
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_FALSE(process->ended());
  EXPECT_TRUE(process->signal(SIGTERM));
  EXPECT_TRUE(process->ended(10s));
  EXPECT_EQ(WTERMSIG(child.wait()), SIGTERM);
  EXPECT_EQ(LocalProcess::open(*fence, "h1").error().code, core::Code::not_found);
}

TEST(RealProcess, IsNotTouchedWhenTheFenceDoesNotFit) {
  auto child = sleeper();
  child.line_with("ready");
  const ProcessFence fence = *fence_of(child.pid(), "h1");
  for (const ProcessFence& wrong :
       {ProcessFence{fence.pid, fence.pid_start + 1, fence.boot_id, "h1"},
        ProcessFence{fence.pid, fence.pid_start, "00000000-0000-0000-0000-000000000000", "h1"},
        ProcessFence{fence.pid, fence.pid_start, fence.boot_id, "h2"}}) {
    const auto process = LocalProcess::open(wrong, "h1");
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().code, core::Code::failed_precondition);
    EXPECT_EQ(local_process_control("h1")->send(wrong, SIGKILL), Observed::stale);
  }
  EXPECT_TRUE(LocalProcess::open(fence, "h1"));
}

core::Command stop_of(const ProcessFence& fence, bool allow_force) {
  core::Command command;
  command.command_id = "cmd_one";
  command.action = "stop";
  command.run = kRun;
  command.issued_at = kStart;
  command.args = core::ValueMap{
      {"deadline", core::ValueMap{{"ack", "1s"}, {"graceful", "2s"}, {"total", "60s"}}},
      {"grace", "5s"},
      {"allow_force", allow_force},
      {"fence", to_value(fence)}};
  return command;
}

TEST(RealProcess, OneThatIgnoresSigtermIsKilledAfterItsGrace) {
  auto child = sleeper(/*ignores_sigterm=*/true);
  child.line_with("ready");
  core::NullLog log;
  core::NullTelemetry telemetry;
  LocalStopAgent agent("h1", local_process_control("h1"), log, telemetry);
  agent.on_command(stop_of(*fence_of(child.pid(), "h1"), true), kStart);
  EXPECT_EQ(agent.tick(kStart + 1s).at(0).to, StopState::platform_graceful);  // SIGTERM
  EXPECT_TRUE(agent.tick(kStart + 5s).empty());
  EXPECT_EQ(agent.tick(kStart + 6s).at(0).to, StopState::platform_force);  // SIGKILL
  EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
  EXPECT_EQ(agent.tick(kStart + 7s).at(0).to, StopState::stopped);
}

}  // namespace
}  // namespace tocsin::actions
