// The training hook's client on a real Kafka: what arrives and in which order, a stop and its
// answers, a topic that comes late, a broker that is frozen in the middle.
#include <gtest/gtest.h>

#include <thread>

#include "collectors/hook/client/settings.h"
#include "core/clock.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SteadyClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override {
    return std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  }
  [[nodiscard]] core::Duration monotonic() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

template <typename Condition>
bool within(seconds limit, Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

/// One hook on one cluster, with topics of its own.
class Hooked {
 public:
  explicit Hooked(const std::string& servers) {
    settings_.transport.kafka = core::ValueMap{{"bootstrap.servers", servers}};
    settings_.topics.prefix = tests::unique_name("hook");
    settings_.topics.partitions = 6;
    settings_.out = "kafka";
    auto opened = ingest::Transport::open(settings_.transport, settings_.topics, log_, telemetry_);
    EXPECT_TRUE(opened);
    transport_ = *std::move(opened);
  }

  void make_topics() {
    const auto made = transport_->ensure_topics();
    ASSERT_TRUE(made) << made.error().message;
  }

  std::shared_ptr<Client> open() {
    identity_.run = core::run_uid_v4();
    identity_.job = "digits";
    identity_.worker = "worker_0";
    identity_.host = "n1";
    identity_.boot_id = "1f0c93ab-0000-4000-8000-000000000000";
    identity_.opened = 1;
    SessionOptions options;
    options.identity = identity_;
    options.incarnation = static_cast<std::uint64_t>(core::nanoseconds(clock_.now()));
    auto trouble = std::make_shared<Trouble>();
    auto plan = CapturePlan::compile({});
    auto endpoints = make_endpoints(settings_, identity_, trouble, options.incarnation);
    auto client = std::make_shared<Client>(options, std::move(plan).value(), std::move(endpoints),
                                           trouble, clock_, ClientOptions{});
    Client::start(client);
    return client;
  }

  /// Everything in a topic, oldest first.
  std::vector<std::string> read(const std::string& topic) {
    ingest::SourceOptions options;
    options.topics = {topic};
    options.start = ingest::Start::beginning;
    options.partition = core::partition_for(core::to_text(identity_.run), 6);
    auto source = transport_->source(options);
    EXPECT_TRUE(source);
    std::vector<std::string> values;
    const auto all =
        (*source)->read_all(topic, *options.partition, std::nullopt,
                            [&](const auto& record) { values.emplace_back(record.text()); });
    EXPECT_TRUE(all) << (all ? "" : all.error().message);
    return values;
  }

  void command(const std::string& action) {
    core::Command command;
    command.command_id = core::command_id(identity_.run, 1, action);
    command.action = action;
    command.run = identity_.run;
    command.issued_at = clock_.now();
    command.launch = {{"n1", "1f0c93ab/1"}};
    command.args = core::ValueMap{{"mode", "stop"}};
    auto publisher = transport_->publisher({});
    ASSERT_TRUE(publisher);
    ASSERT_TRUE((*publisher)->publish(ingest::encode_command(command, "/test")));
    ASSERT_TRUE((*publisher)->flush(seconds(10)));
  }

  /// Steps that are ended in what arrived; checks that no sequence number is missing.
  std::size_t steps_without_a_gap() {
    std::uint64_t sequence = 0;
    std::size_t steps = 0;
    for (const std::string& value : read("telemetry")) {
      const auto decoded =
          ingest::decode_frame(std::as_bytes(std::span(value.data(), value.size())));
      EXPECT_TRUE(decoded);
      EXPECT_EQ(decoded.frame().header().sequence, ++sequence);
      if (decoded.frame().header().kind == core::FrameKind::step_end)
        steps += decoded.frame().rows();
    }
    return steps;
  }

 private:
  Settings settings_;
  SteadyClock clock_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
  Identity identity_;
};

TEST(ClientOnKafka, EveryFrameArrivesInOrderInTheRunsPartition) {
  const auto servers = tests::kafka_bootstrap_servers();
  ASSERT_TRUE(servers) << servers.error().message;
  Hooked hooked(*servers);
  hooked.make_topics();
  auto client = hooked.open();
  for (int step = 0; step < 100; ++step) client->session().step_end(false, 1);
  EXPECT_TRUE(client->flush(seconds(20))) << client->counters();
  EXPECT_TRUE(Client::close(client, "completed", "", 0, seconds(10)));
  EXPECT_EQ(hooked.steps_without_a_gap(), 100U);
}

TEST(ClientOnKafka, StopIsSeenInMillisecondsAndAcknowledged) {
  const auto servers = tests::kafka_bootstrap_servers();
  ASSERT_TRUE(servers) << servers.error().message;
  Hooked hooked(*servers);
  hooked.make_topics();
  auto client = hooked.open();
  hooked.command("profile");  // refused; its answer says that commands are being read
  ASSERT_TRUE(within(seconds(20), [&] { return client->commands().refused() == 1; }))
      << client->counters();
  hooked.command("stop");
  const auto written = std::chrono::steady_clock::now();
  ASSERT_TRUE(within(seconds(20), [&] { return client->commands().bits() != 0; }));
  const auto took = std::chrono::steady_clock::now() - written;
  RecordProperty("stop_latency_us", static_cast<int>(took / std::chrono::microseconds(1)));
  EXPECT_LT(took, seconds(1));
  EXPECT_TRUE(Client::close(client, "stopped_by_rule", "", 77, seconds(10)));
  const auto acks = hooked.read("acks");
  ASSERT_EQ(acks.size(), 2U);
  EXPECT_NE(acks[0].find("\"refused\""), std::string::npos);
  EXPECT_NE(acks[1].find("\"received\""), std::string::npos);
}

TEST(ClientOnKafka, TopicsThatAreMadeLaterLoseNothing) {
  const auto servers = tests::kafka_bootstrap_servers();
  ASSERT_TRUE(servers) << servers.error().message;
  Hooked hooked(*servers);
  auto client = hooked.open();
  for (int step = 0; step < 10; ++step) client->session().step_end(false, 1);
  ASSERT_TRUE(within(seconds(20), [&] {
    return client->counters().find("\"transport_errors_total\":0") == std::string::npos;
  }));
  hooked.make_topics();
  EXPECT_TRUE(client->flush(seconds(30))) << client->counters();
  EXPECT_TRUE(Client::close(client, "completed", "", 0, seconds(10)));
  EXPECT_EQ(hooked.steps_without_a_gap(), 10U);
}

TEST(ClientOnKafka, FrozenBrokerNeverHoldsTheLoopAndLosesNothingWhenItComesBack) {
  auto cluster = tests::KafkaCluster::start("client_freeze");
  ASSERT_TRUE(cluster) << cluster.error().message;
  Hooked hooked((*cluster)->servers());
  hooked.make_topics();
  auto client = hooked.open();
  client->session().step_end(false, 1);
  ASSERT_TRUE(client->flush(seconds(20))) << client->counters();
  ASSERT_TRUE((*cluster)->pause());
  core::Duration slowest{0};
  for (int step = 0; step < 2000; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    client->session().step_end(false, 1);
    (void)client->commands().ask(step);
    slowest = std::max<core::Duration>(slowest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(slowest, milliseconds(500));  // a time slice on a loaded machine, never a time-out
  ASSERT_TRUE((*cluster)->resume());
  EXPECT_TRUE(client->flush(seconds(30))) << client->counters();
  EXPECT_TRUE(Client::close(client, "completed", "", 0, seconds(10)));
  EXPECT_EQ(hooked.steps_without_a_gap(), 2001U);
}

}  // namespace
}  // namespace tocsin::hook
