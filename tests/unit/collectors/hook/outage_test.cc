// A broker that goes away in the middle of a run: what waits on the disk, and how it follows.
#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "core/topics.h"
#include "tests/unit/collectors/hook/sender_fixture.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

}  // namespace
}  // namespace tocsin::hook
