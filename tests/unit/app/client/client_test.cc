// The sending side against the memory broker, commands by records, and close() under real threads.
#include "app/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/topics.h"
#include "tests/simulation/broker.h"
#include "tests/unit/app/client/fixture.h"

namespace tocsin::app::client {
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

Endpoints endpoints_of(simulation::MemoryBroker& broker) {
  Endpoints out;
  out.publisher = [&broker] { return broker.publisher({}); };
  out.commands = [&broker](core::RecordPublisher&) {
    ingest::SourceOptions options;
    options.topics = {"commands"};
    options.start = ingest::Start::beginning;
    return broker.source(options);
  };
  return out;
}

SessionOptions session_options() {
  SessionOptions options;
  options.identity = make_identity();
  return options;
}

core::Command stop_command() {
  core::Command command;
  command.command_id = "cmd_1";
  command.action = "stop";
  command.run = make_identity().run;
  command.launch = {{"n1", "1f0c93ab/81402118843000"}};
  command.args = core::ValueMap{{"mode", "stop"}};
  return command;
}

class SenderTest : public ::testing::Test {
 protected:
  void step() {
    session_.step_end(false, 1);
    session_.flush();
  }

  ManualClock clock_;
  simulation::MemoryBroker broker_;
  SendQueue queue_{1 << 20};
  Session session_{session_options(), make_plan(), clock_, queue_};
  Trouble trouble_;
  Endpoints endpoints_ = endpoints_of(broker_);
  Sender sender_{endpoints_, session_, queue_, clock_, trouble_};
};

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

/// A broker that goes away and comes back, and a disk.
class OutageTest : public SenderTest {
 protected:
  OutageTest() {
    endpoints_.publisher = [this]() -> core::Result<std::unique_ptr<core::RecordPublisher>> {
      if (away_) return core::unavailable("nobody answers");
      return broker_.publisher({});
    };
    endpoints_.answers = [this] { return !away_; };
    endpoints_.spool.directory = "somewhere";
    endpoints_.spool.write = [this] { return disk_.publisher({}); };
    endpoints_.spool.read = [this] {
      ingest::SourceOptions options;
      options.topics = {core::topic::kTelemetry};
      options.start = ingest::Start::beginning;
      return disk_.source(options);
    };
    endpoints_.spool.remove = [this] { ++removed_; };
  }
  void leave() {
    away_ = true;
    broker_.fail_next_flushes({core::Code::deadline_exceeded, "not yet"}, 1'000'000);
  }
  void come_back() {
    away_ = false;
    broker_.heal();
  }
  /// Turns, a second apart.
  void turns(Sender& sender, int count) {
    for (int i = 0; i < count; ++i) {
      clock_.advance(seconds(1));
      sender.turn();
    }
  }
  /// (sequence, flags) of what the broker has, as a reader takes it: what it knows it passes over.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> read() {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> out;
    for (const auto& stored : broker_.records("telemetry")) {
      const auto header = KeptFrame{*stored.record.value}.view().header();
      if (!out.empty() && header.sequence <= out.back().first) continue;
      out.emplace_back(header.sequence, header.flags);
    }
    return out;
  }
  void expect_no_gap(std::size_t at_least) {
    const auto all = read();
    ASSERT_GE(all.size(), at_least);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].first, i + 1);
  }

  simulation::MemoryBroker disk_;
  bool away_ = false;
  int removed_ = 0;
};

TEST_F(OutageTest, WhatABrokerDoesNotTakeWaitsOnTheDiskAndFollowsInOrder) {
  Sender sender(endpoints_, session_, queue_, clock_, trouble_);
  step();
  sender.turn();
  turns(sender, 6);
  EXPECT_EQ(sender.confirmed(), sender.sent());
  leave();
  step();
  turns(sender, 20);
  for (int i = 0; i < 50; ++i) {
    step();
    turns(sender, 1);
  }
  EXPECT_EQ(queue_.size(), 0U);
  EXPECT_GE(sender.spool().waiting(), 50U);
  EXPECT_EQ(sender.unconfirmed(), 0U) << "they are on the disk";
  come_back();
  step();
  turns(sender, 3);
  EXPECT_EQ(sender.spool().waiting(), 0U);
  EXPECT_EQ(removed_, 1);
  step();
  turns(sender, 6);
  expect_no_gap(54);
  EXPECT_EQ(read().back().second, 0U) << "what comes afterwards comes in time";
  EXPECT_EQ(read()[30].second, core::frame_flag::kFromSpool);
  EXPECT_TRUE(sender.flush(seconds(1)));
  EXPECT_LT(sender.confirmed(), sender.sent()) << "some were sent in vain first";
  EXPECT_EQ(sender.unconfirmed(), 0U);
}

TEST_F(OutageTest, ABrokerThatIsSlowAndAnswersIsWaitedFor) {
  Sender sender(endpoints_, session_, queue_, clock_, trouble_);
  broker_.fail_next_flushes({core::Code::deadline_exceeded, "not yet"}, 1'000'000);
  for (int i = 0; i < 60; ++i) {
    step();
    turns(sender, 1);
  }
  EXPECT_EQ(sender.spool().added_ever(), 0U);
  EXPECT_GE(broker_.records("telemetry").size(), 60U);
}

TEST_F(OutageTest, ABrokerThatWasNeverThere) {
  leave();
  Sender sender(endpoints_, session_, queue_, clock_, trouble_);
  for (int i = 0; i < 4; ++i) {
    step();
    turns(sender, 1);
  }
  EXPECT_EQ(sender.spool().added_ever(), 0U) << "it may be starting";
  for (int i = 0; i < 10; ++i) {
    step();
    turns(sender, 1);
  }
  EXPECT_EQ(queue_.size(), 0U);
  come_back();
  turns(sender, 2);
  expect_no_gap(15);
}

TEST_F(OutageTest, ItGoesAwayAgainWhileItIsToldWhatItMissed) {
  Sender sender(endpoints_, session_, queue_, clock_, trouble_);
  leave();
  for (int i = 0; i < 30; ++i) {
    step();
    turns(sender, 1);
  }
  away_ = false;  // it takes records and confirms nothing
  turns(sender, 2);
  EXPECT_GE(sender.spool().waiting(), 30U);
  away_ = true;
  turns(sender, 12);
  for (int i = 0; i < 5; ++i) {
    step();
    turns(sender, 1);
  }
  EXPECT_GE(sender.spool().waiting(), 35U);
  come_back();
  turns(sender, 3);
  expect_no_gap(35);
  EXPECT_EQ(sender.spool().waiting(), 0U);
}

TEST_F(OutageTest, AFullDiskLeavesTheRestInTheQueue) {
  endpoints_.spool.most_bytes = 2000;
  leave();
  Sender sender(endpoints_, session_, queue_, clock_, trouble_);
  for (int i = 0; i < 40; ++i) {
    step();
    turns(sender, 1);
  }
  EXPECT_LE(sender.spool().bytes(), 2000U);
  EXPECT_GE(queue_.size(), 20U);
  come_back();
  turns(sender, 3);
  expect_no_gap(40);
}

TEST_F(OutageTest, AnswersToCommandsWaitInMemory) {
  Sender sender(endpoints_, session_, queue_, clock_, trouble_);
  leave();
  turns(sender, 10);
  core::Ack ack;
  ack.command_id = "cmd_1";
  ack.phase = "received";
  session_.ack(ack);
  turns(sender, 10);
  EXPECT_TRUE(disk_.records("acks").empty());
  come_back();
  turns(sender, 3);
  EXPECT_EQ(broker_.records("acks").size(), 1U);
}

TEST_F(OutageTest, TheEndOfTheTrainingLeavesTheRestThere) {
  Sender sender(endpoints_, session_, queue_, clock_, trouble_);
  step();
  turns(sender, 6);
  leave();
  step();
  EXPECT_FALSE(sender.flush(milliseconds(1)));
  sender.spool_left();
  EXPECT_GE(sender.spool().waiting(), 1U);
  EXPECT_EQ(disk_.records("telemetry").size(), sender.spool().waiting());
  EXPECT_EQ(removed_, 0);
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
}  // namespace tocsin::app::client
