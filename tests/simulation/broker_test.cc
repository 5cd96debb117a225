// What the broker in memory promises beyond the contract suite: several members, fencing, open
// transactions, sessions.
#include "tests/simulation/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/clock.h"

namespace tocsin::simulation {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

core::OutRecord record(std::string topic, std::string key, std::string value) {
  return {std::move(topic), std::move(key), std::move(value)};
}

/// Resumes what it is assigned and keeps a diary.
class Owner final : public core::AssignmentListener {
 public:
  Owner(ingest::Transport& transport, std::string id) : id_(std::move(id)) {
    ingest::SourceOptions options;
    options.group = "group";
    options.topics = {"telemetry"};
    options.listener = this;
    source = *transport.source(options);
    ingest::PublisherOptions writes;
    writes.transactional_id = id_;
    writes.source = source.get();
    publisher = *transport.publisher(writes);
  }
  void assigned(std::span<const core::Position> committed) override {
    std::vector<core::StreamPartition> all;
    for (const auto& position : committed) {
      all.push_back(position.where);
      owned.insert(position.where.partition);
    }
    ASSERT_TRUE(source->resume(all));
  }
  void revoked(std::span<const core::StreamPartition> partitions) override {
    ++revocations;
    if (in_revoked) in_revoked();
    for (const auto& where : partitions) owned.erase(where.partition);
  }
  void lost(std::span<const core::StreamPartition> partitions) override {
    ++losses;
    for (const auto& where : partitions) owned.erase(where.partition);
  }
  core::Status poll() {
    const auto polled = source->poll(
        0ms, 100, [&](const core::RecordView& view) { read.emplace_back(view.text()); });
    return polled ? core::ok() : core::Status(polled.error());
  }
  core::Status commit(const std::string& value) {
    const std::vector<core::OutRecord> out{record("issues", "run", value)};
    return publisher->commit(out, source->positions());
  }

  std::unique_ptr<core::RecordSource> source;
  std::unique_ptr<core::RecordPublisher> publisher;
  std::set<std::int32_t> owned;
  std::vector<std::string> read;
  std::function<void()> in_revoked;
  int revocations = 0, losses = 0;

 private:
  std::string id_;
};

class BrokerTest : public testing::Test {
 protected:
  static BrokerOptions options(const core::Clock& clock) {
    BrokerOptions out;
    out.topics.partitions = 4;
    out.clock = &clock;
    out.markers = true;
    return out;
  }
  std::vector<std::string> issues() {
    std::vector<std::string> values;
    for (const auto& stored : broker_.records("issues")) values.push_back(*stored.record.value);
    return values;
  }
  void fill(int count) {
    for (int i = 0; i < count; ++i) {
      auto one = record("telemetry", "k", std::to_string(i));
      one.partition = i % 4;
      broker_.append(one);
    }
  }
  void fail_commits(Fault fault) {
    broker_.on_call(
        [fault](std::string_view, Call call) { return call == Call::commit ? fault : Fault{}; });
  }
  static Fault fault(Fault::Kind kind, core::Duration arrives = {}) {
    return {kind, {core::Code::deadline_exceeded, "no answer"}, arrives, false};
  }

  SimulatedClock clock_;
  MemoryBroker broker_{options(clock_)};
};

TEST_F(BrokerTest, MembersShareThePartitionsAndASecondOneTakesOnlyItsHalf) {
  Owner first(broker_, "a");
  ASSERT_TRUE(first.poll());
  EXPECT_THAT(first.owned, SizeIs(4));
  Owner second(broker_, "b");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(second.poll());
    ASSERT_TRUE(first.poll());
  }
  EXPECT_THAT(first.owned, SizeIs(2));
  EXPECT_THAT(second.owned, SizeIs(2));
  EXPECT_EQ(first.revocations, 1);
  EXPECT_EQ(first.losses, 0);
  second.source->close(0ms);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first.poll());
  EXPECT_THAT(first.owned, SizeIs(4));
}

TEST_F(BrokerTest, WhatIsGivenBackMayStillBeCommitted) {
  fill(8);
  Owner first(broker_, "a");
  ASSERT_TRUE(first.poll());
  ASSERT_TRUE(first.poll());
  first.in_revoked = [&] { EXPECT_TRUE(first.commit("in revoked")); };
  Owner second(broker_, "b");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(second.poll());
    ASSERT_TRUE(first.poll());
  }
  EXPECT_EQ(first.revocations, 1);
  EXPECT_THAT(issues(), ElementsAre("in revoked"));
  EXPECT_THAT(second.read, IsEmpty());
}

TEST_F(BrokerTest, AZombieIsThrownOutAndCannotCommit) {
  Owner zombie(broker_, "a");
  Owner other(broker_, "b");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(zombie.poll());
    ASSERT_TRUE(other.poll());
  }
  fill(4);
  ASSERT_TRUE(zombie.poll());
  ASSERT_THAT(zombie.read, SizeIs(2));
  for (int i = 0; i < 15; ++i) {  // frozen beyond its session while the other one goes on
    clock_.advance(1s);
    ASSERT_TRUE(other.poll());
  }
  EXPECT_THAT(other.owned, SizeIs(4));
  const auto status = zombie.commit("too late");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::failed_precondition);
  EXPECT_THAT(issues(), IsEmpty());
  ASSERT_TRUE(zombie.poll());
  EXPECT_EQ(zombie.losses, 1);
}

TEST_F(BrokerTest, ASecondOwnerOfATransactionalIdFencesTheFirst) {
  fill(1);
  Owner first(broker_, "same");
  ASSERT_TRUE(first.poll());
  ASSERT_TRUE(first.commit("one"));
  ingest::PublisherOptions options;
  options.transactional_id = "same";
  auto second = *broker_.publisher(options);
  ASSERT_TRUE(second->commit({}, {}));
  const auto status = first.commit("two");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::failed_precondition);
  EXPECT_THAT(issues(), ElementsAre("one"));
}

TEST_F(BrokerTest, ALostAnswerIsFoundOutByTheSameCommitAgain) {
  fill(1);
  Owner owner(broker_, "a");
  ASSERT_TRUE(owner.poll());
  fail_commits(fault(Fault::Kind::lost));
  ASSERT_FALSE(owner.commit("once"));
  broker_.heal();
  EXPECT_THAT(issues(), ElementsAre("once"));
  ASSERT_TRUE(owner.commit("once"));
  EXPECT_THAT(issues(), ElementsAre("once"));
}

TEST_F(BrokerTest, AHangingCommitHoldsReadersBackUntilItArrivesOrTimesOut) {
  fill(1);
  Owner owner(broker_, "a");
  ASSERT_TRUE(owner.poll());
  fail_commits(fault(Fault::Kind::hangs, 3s));
  ASSERT_FALSE(owner.commit("late"));
  broker_.heal();
  broker_.append(record("issues", "run", "behind it"));
  ASSERT_TRUE(broker_.ping(0ms));
  EXPECT_THAT(issues(), IsEmpty());
  EXPECT_EQ(broker_.sizes().open_transactions, 1U);
  clock_.advance(4s);
  ASSERT_TRUE(broker_.ping(0ms));
  EXPECT_THAT(issues(), ElementsAre("late", "behind it"));

  fail_commits(fault(Fault::Kind::hangs));
  Owner next(broker_, "a");
  ASSERT_FALSE(next.publisher->commit(std::vector{record("issues", "run", "never")}, {}));
  broker_.heal();
  clock_.advance(20s);
  ASSERT_TRUE(broker_.ping(0ms));
  EXPECT_THAT(issues(), ElementsAre("late", "behind it"));
  // Its id was fenced by the timeout.
  EXPECT_FALSE(next.publisher->commit(std::vector{record("issues", "run", "never")}, {}));
}

TEST_F(BrokerTest, ASuccessorWaitsUntilThePositionsAreDecided) {
  fill(4);
  auto process = broker_.connect("one");
  auto owner = std::make_unique<Owner>(*process, "a");
  ASSERT_TRUE(owner->poll());
  fail_commits(fault(Fault::Kind::hangs, 5s));
  ASSERT_FALSE(owner->commit("in the air"));
  broker_.heal();
  broker_.die(*process);
  owner.reset();
  clock_.advance(1s);
  Owner successor(broker_, "b");
  ASSERT_TRUE(successor.poll());  // the dead member's session is not over
  EXPECT_THAT(successor.owned, IsEmpty());
  clock_.advance(3s);
  for (int i = 0; i < 8 && successor.owned.empty(); ++i) {
    clock_.advance(1s);
    (void)successor.poll();
  }
  EXPECT_THAT(successor.owned, SizeIs(4));
  EXPECT_THAT(successor.read, IsEmpty());
  EXPECT_THAT(issues(), ElementsAre("in the air"));
}

TEST_F(BrokerTest, ACommitThatArrivesInALaterGenerationIsRefused) {
  fill(4);
  Owner owner(broker_, "a");
  ASSERT_TRUE(owner.poll());
  fail_commits(fault(Fault::Kind::late, 5s));
  ASSERT_FALSE(owner.commit("of the generation before"));
  broker_.heal();
  Owner other(broker_, "b");
  for (int i = 0; i < 8; ++i) {
    clock_.advance(500ms);
    (void)owner.poll();
    (void)other.poll();
  }
  ASSERT_THAT(other.owned, SizeIs(2));
  clock_.advance(2s);
  (void)owner.poll();
  EXPECT_THAT(issues(), IsEmpty());
  EXPECT_TRUE(other.commit("of this one"));
  EXPECT_THAT(issues(), ElementsAre("of this one"));
}

TEST_F(BrokerTest, OnlyOneHoldsALeaseAndTheDeadHoldItForASession) {
  auto process = broker_.connect("one");
  auto first = *process->lease("router-lease");
  auto second = *broker_.lease("router-lease");
  ASSERT_TRUE(first->step(clock_.monotonic(), 0ms));
  ASSERT_TRUE(second->step(clock_.monotonic(), 0ms));
  EXPECT_TRUE(first->valid_until());
  EXPECT_FALSE(second->valid_until());
  broker_.die(*process);
  first.reset();
  clock_.advance(9s);
  ASSERT_TRUE(second->step(clock_.monotonic(), 0ms));
  EXPECT_FALSE(second->valid_until());
  clock_.advance(2s);
  ASSERT_TRUE(second->step(clock_.monotonic(), 0ms));
  EXPECT_TRUE(second->valid_until());
}

TEST_F(BrokerTest, CompactionKeepsTheNewestOfEachKeyWhereItStands) {
  for (int i = 0; i < 6; ++i) {
    auto one = record("rules-state", "key-" + std::to_string(i % 2), std::to_string(i));
    one.partition = 0;
    broker_.append(one);
  }
  broker_.compact("rules-state");
  std::vector<std::pair<std::int64_t, std::string>> left;
  for (const auto& stored : broker_.records("rules-state")) {
    left.emplace_back(stored.offset, *stored.record.value);
  }
  EXPECT_THAT(left, ElementsAre(testing::Pair(4, "4"), testing::Pair(5, "5")));
}

}  // namespace
}  // namespace tocsin::simulation
