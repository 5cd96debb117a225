// The sending side against the memory broker, commands by records, and close() under real threads.
#include "collectors/hook/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collectors/hook/sender_fixture.h"

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

core::Command stop_command() {
  core::Command command;
  command.command_id = "cmd_1";
  command.action = "stop";
  command.run = make_identity().run;
  command.launch = {{"n1", "1f0c93ab/81402118843000"}};
  command.args = core::ValueMap{{"mode", "stop"}};
  return command;
}

TEST_F(SenderTest, PublishesInOrderUnderTheRunsKey) {
  step();
  step();
  sender_.turn();
  const auto records = broker_.records("telemetry");
  ASSERT_EQ(records.size(), 4U);  // dictionary, start, two step ends
  EXPECT_EQ(records[0].record.key, core::to_text(make_identity().run));
  EXPECT_EQ(sender_.sent(), 4U);
}

TEST_F(SenderTest, RecordThatIsNotTakenIsOfferedAgainInItsPlace) {
  step();
  broker_.fail_next_publishes({core::Code::resource_exhausted, "full"}, 1);
  sender_.turn();
  EXPECT_TRUE(sender_.stuck());
  EXPECT_EQ(trouble_.text(), "full");
  EXPECT_TRUE(broker_.records("telemetry").empty());
  clock_.advance(milliseconds(50));
  sender_.turn();
  EXPECT_FALSE(sender_.stuck());
  std::uint64_t sequence = 0;
  for (const auto& stored : broker_.records("telemetry")) {
    EXPECT_EQ((KeptFrame{*stored.record.value}.view().header().sequence), ++sequence);
  }
  EXPECT_EQ(sequence, 3U);
}

TEST_F(SenderTest, MissingTopicIsWaitedForAtLeisure) {
  step();
  broker_.fail_next_publishes(core::not_found("no such topic"), 1);
  sender_.turn();
  clock_.advance(milliseconds(500));
  sender_.turn();
  EXPECT_TRUE(broker_.records("telemetry").empty());
  clock_.advance(milliseconds(600));
  sender_.turn();
  EXPECT_EQ(broker_.records("telemetry").size(), 3U);
}

TEST_F(SenderTest, RecordThatCanNeverBeSentBecomesAGap) {
  step();
  broker_.fail_next_publishes(core::invalid_argument("too large"), 1);
  sender_.turn();
  sender_.turn();
  const auto records = broker_.records("telemetry");
  bool told = false;
  for (const auto& stored : records) {
    const KeptFrame frame{*stored.record.value};
    if (frame.view().header().kind != core::FrameKind::lifecycle) continue;
    told = told ||
           (frame.lifecycle().event == core::LifecycleEvent::gap && frame.lifecycle().frames == 1);
  }
  EXPECT_TRUE(told);
}

TEST_F(SenderTest, LossBehindThePublisherIsReportedAndNamesAreSentAgain) {
  step();
  sender_.turn();
  clock_.advance(seconds(4));
  const std::size_t before = broker_.records("telemetry").size();
  broker_.fail_next_flushes(core::unavailable("delivering: timed out"), 1);
  clock_.advance(seconds(2));
  sender_.turn();
  const auto records = broker_.records("telemetry");
  std::vector<core::FrameKind> kinds;
  std::string reason;
  for (std::size_t i = before; i < records.size(); ++i) {
    const KeptFrame frame{*records[i].record.value};
    kinds.push_back(frame.view().header().kind);
    if (kinds.back() != core::FrameKind::lifecycle) continue;
    if (frame.lifecycle().event == core::LifecycleEvent::gap) reason = frame.lifecycle().reason;
  }
  EXPECT_EQ(reason, "delivery_failed: delivering: timed out");
  EXPECT_THAT(kinds, ::testing::Contains(core::FrameKind::dictionary));
}

TEST_F(SenderTest, TransportThatCannotBeOpenedIsTriedEverySecond) {
  int tries = 0;
  endpoints_.publisher = [&]() -> core::Result<std::unique_ptr<core::RecordPublisher>> {
    ++tries;
    return core::unavailable("not yet");
  };
  step();
  for (int i = 0; i < 30; ++i) {
    sender_.turn();
    clock_.advance(milliseconds(100));
  }
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(trouble_.text(), "not yet");
}

TEST(Client, DeliversEverythingAndEndsWhenClosed) {
  simulation::MemoryBroker broker;
  SteadyClock clock;
  auto client = std::make_shared<Client>(session_options(), make_plan(), endpoints_of(broker),
                                         std::make_shared<Trouble>(), clock, ClientOptions{});
  Client::start(client);
  for (int i = 0; i < 10; ++i) client->session().step_end(false, 1);
  EXPECT_TRUE(client->flush(seconds(5)));
  EXPECT_TRUE(Client::close(client, "completed", "", 0, seconds(5)));
  const auto records = broker.records("telemetry");
  EXPECT_EQ((KeptFrame{*records.back().record.value}.lifecycle().outcome), "completed");
}

TEST(Client, CommandReachesTheAtomicAndIsAcknowledged) {
  simulation::MemoryBroker broker;
  SteadyClock clock;
  auto client = std::make_shared<Client>(session_options(), make_plan(), endpoints_of(broker),
                                         std::make_shared<Trouble>(), clock, ClientOptions{});
  Client::start(client);
  broker.append(ingest::encode_command(stop_command(), "/test"));
  const auto until = std::chrono::steady_clock::now() + seconds(10);
  while (client->commands().bits() == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(client->commands().ask(0), 1);
  EXPECT_TRUE(Client::close(client, "stopped_by_rule", "", 77, seconds(5)));
  const auto acks = broker.records("acks");
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_NE(acks[0].record.value->find("\"received\""), std::string::npos);
}

// The sending thread sleeps for seconds when a loop is between steps; a row must not wait for that.
TEST(Client, IdleSenderIsWokenByTheFirstRow) {
  simulation::MemoryBroker broker;
  SteadyClock clock;
  auto client = std::make_shared<Client>(session_options(), make_plan(), endpoints_of(broker),
                                         std::make_shared<Trouble>(), clock, ClientOptions{});
  Client::start(client);
  NameInfo info;
  info.type = core::DictionaryType::scalar;
  const std::uint64_t loss = client->session().name("loss", info);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(milliseconds(300));
    const std::size_t before = broker.records("telemetry").size();
    client->session().scalars(std::array{loss}, std::array{1.0});
    const auto until = std::chrono::steady_clock::now() + seconds(2);
    while (broker.records("telemetry").size() == before &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_GT(broker.records("telemetry").size(), before);
  }
  EXPECT_TRUE(Client::close(client, "completed", "", 0, seconds(5)));
}

TEST(Client, CloseIsBoundedWhenNothingCanBeDelivered) {
  SteadyClock clock;
  Endpoints nowhere;
  nowhere.publisher = []() -> core::Result<std::unique_ptr<core::RecordPublisher>> {
    return core::unavailable("down");
  };
  nowhere.commands =
      [](core::RecordPublisher&) -> core::Result<std::unique_ptr<core::RecordSource>> {
    return core::unavailable("down");
  };
  auto client = std::make_shared<Client>(session_options(), make_plan(), nowhere,
                                         std::make_shared<Trouble>(), clock, ClientOptions{});
  Client::start(client);
  client->session().step_end(false, 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Client::close(client, "completed", "", 0, milliseconds(50)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(2));
  EXPECT_NE(client->counters().find("\"error\":\"down\""), std::string::npos);
}

}  // namespace
}  // namespace tocsin::hook
