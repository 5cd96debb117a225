// Answers in time from a cluster that is frozen or dies, and nothing written twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/contract/transport_backends.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Clock = std::chrono::steady_clock;

/// What was opened; a failure ends the test with its message.
template <typename T>
T made(core::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

/// A cluster of its own, to be frozen and killed.
class KafkaFaults : public testing::Test {
 protected:
  void SetUp() override {
    auto cluster = KafkaCluster::start("faults");
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = std::move(*cluster);
    ingest::TransportConfig cfg;
    // A membership that outlives the freeze.
    cfg.kafka = core::ValueMap{{"bootstrap.servers", cluster_->servers()},
                               {"consumer", core::ValueMap{{"session.timeout.ms", 40000}}}};
    topics_.partitions = 1;
    auto transport = ingest::Transport::open(cfg, topics_, log_, telemetry_);
    ASSERT_TRUE(transport) << transport.error().message;
    transport_ = std::move(*transport);
    const auto ready = transport_->ensure_topics();
    ASSERT_TRUE(ready) << ready.error().message;
  }
  /// A broker that has just begun may still read what its coordinator knows: whoever opens a
  /// publisher asks again.
  std::unique_ptr<core::RecordPublisher> committer(core::RecordSource* source) {
    ingest::PublisherOptions options;
    options.transactional_id = "engine-0";
    options.source = source;
    options.commit_timeout = seconds{3};
    const auto deadline = Clock::now() + seconds{60};
    for (;;) {
      auto publisher = transport_->publisher(options);
      if (publisher || !publisher.error().retryable() || Clock::now() > deadline) {
        return made(std::move(publisher));
      }
    }
  }
  std::unique_ptr<core::RecordSource> open(ingest::SourceOptions options) {
    return made(transport_->source(std::move(options)));
  }
  std::unique_ptr<core::RecordSource> member() {
    ingest::SourceOptions options;
    options.group = "engine";
    options.topics = {"telemetry"};
    return open(options);
  }
  void send(const std::string& value) {
    auto producer = transport_->publisher({});
    ASSERT_TRUE(producer);
    ASSERT_TRUE((*producer)->publish(record("telemetry", "run", value)));
    const auto flushed = (*producer)->flush(seconds{20});
    ASSERT_TRUE(flushed) << flushed.error().message;
  }
  std::vector<std::string> issues() {
    ingest::SourceOptions options;
    options.topics = {"issues"};
    auto source = open(options);
    const auto all = read_to_end(*source);
    EXPECT_TRUE(all) << all.error().message;
    std::vector<std::string> values;
    for (const auto& kept : *all) values.push_back(kept.value);
    return values;
  }
  template <typename F>
  static milliseconds time(F&& call) {
    const auto start = Clock::now();
    call();
    return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  }

  core::NullLog log_;
  core::NullTelemetry telemetry_;
  ingest::TopicsConfig topics_;
  std::unique_ptr<KafkaCluster> cluster_;
  std::unique_ptr<ingest::Transport> transport_;
};

TEST_F(KafkaFaults, AFrozenClusterIsAnsweredInTimeAndCommitsOnceAfterwards) {
  send("a");
  auto source = member();
  ASSERT_TRUE(read_records(*source, 1));
  auto publisher = committer(source.get());
  ASSERT_TRUE(publisher->commit(std::vector{record("issues", "k", "0")}, source->positions()));
  send("b");
  ASSERT_TRUE(read_records(*source, 1));
  ASSERT_TRUE(cluster_->pause());

  const std::vector<core::OutRecord> out = {record("issues", "k", "1")};
  const auto positions = source->positions();
  core::Status status = core::ok();
  EXPECT_LT(time([&] { status = publisher->commit(out, positions); }), seconds{8});
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().code == core::Code::unavailable ||
              status.error().code == core::Code::deadline_exceeded)
      << status.error().message;
  EXPECT_LT(time([&] { (void)source->poll(milliseconds{200}, 1, [](const core::RecordView&) {}); }),
            seconds{2});
  EXPECT_LT(time([&] { status = transport_->ping(milliseconds{300}); }), seconds{2});
  EXPECT_FALSE(status);
  auto plain = transport_->publisher({});
  ASSERT_TRUE(plain);
  EXPECT_LT(time([&] {
              (void)(*plain)->publish(record("telemetry", "run", "later"));
              status = (*plain)->flush(milliseconds{300});
            }),
            seconds{2});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::deadline_exceeded);

  ASSERT_TRUE(cluster_->resume());
  const auto deadline = Clock::now() + seconds{40};
  do {
    status = publisher->commit(out, positions);
  } while (!status && status.error().retryable() && Clock::now() < deadline);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(issues(), ElementsAre("0", "1"));
}

TEST_F(KafkaFaults, ACommitWithoutAnswerIsFinishedAndWhatCameBehindItFollows) {
  auto publisher = committer(nullptr);
  ASSERT_TRUE(publisher->commit(std::vector{record("issues", "k", "0")}, {}));
  ASSERT_TRUE(cluster_->pause());
  const auto first = publisher->commit(std::vector{record("issues", "k", "1")}, {});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, core::Code::deadline_exceeded) << first.error().message;
  const auto other = publisher->commit(std::vector{record("issues", "k", "not one")}, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, core::Code::internal) << other.error().message;
  ASSERT_TRUE(cluster_->resume());
  const std::vector<core::OutRecord> longer = {record("issues", "k", "1"),
                                               record("issues", "k", "2")};
  core::Status status = core::ok();
  const auto deadline = Clock::now() + seconds{40};
  do {
    status = publisher->commit(longer, {});
  } while (!status && status.error().retryable() && Clock::now() < deadline);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(issues(), ElementsAre("0", "1", "2"));
}

TEST_F(KafkaFaults, WhatWentThroughBeforeAFailureIsNotWrittenAgain) {
  auto publisher = committer(nullptr);
  ASSERT_TRUE(publisher->commit(std::vector{record("issues", "k", "0")}, {}));
  ASSERT_TRUE(cluster_->pause());
  ASSERT_FALSE(publisher->commit(std::vector{record("issues", "k", "1")}, {}));
  ASSERT_TRUE(cluster_->resume());
  const auto insist = [&](const std::vector<core::OutRecord>& records) {
    core::Status status = core::ok();
    const auto deadline = Clock::now() + seconds{40};
    do {
      status = publisher->commit(records, {});
    } while (!status && status.error().retryable() && Clock::now() < deadline);
    return status;
  };
  // The answer is there now, and what stands behind it fails for a reason of its own.
  const auto refused = insist({record("issues", "k", "1"), record("no-such-topic", "k", "2")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Code::not_found) << refused.error().message;
  const auto status = insist({record("issues", "k", "1"), record("issues", "k", "3")});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(issues(), ElementsAre("0", "1", "3"));
}

TEST_F(KafkaFaults, ACommitWaitsForWhatWasWrittenAheadAndForNothingBehindIt) {
  ingest::PublisherOptions options;
  options.linger = milliseconds{0};
  options.commit_timeout = seconds{3};
  auto opened = transport_->publisher(options);
  ASSERT_TRUE(opened);
  auto& publisher = **opened;
  ASSERT_TRUE(publisher.commit(std::vector{record("issues", "k", "0")}, {}));
  ASSERT_TRUE(cluster_->pause());
  ASSERT_TRUE(publisher.write_ahead(record("issues", "k", "1")));
  // No record and no position of its own: what is on its way is enough.
  core::Status status = publisher.commit({}, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::deadline_exceeded) << status.error().message;
  std::jthread others([&](const std::stop_token& stop) {
    // Others go on writing: a commit that waited until nothing is under way would never end.
    for (int i = 0; !stop.stop_requested(); ++i) {
      (void)publisher.write_ahead(record("acks", "k", std::to_string(i)));
      std::this_thread::yield();
    }
  });
  ASSERT_TRUE(cluster_->resume());
  const auto deadline = Clock::now() + seconds{40};
  do {
    status = publisher.commit(std::vector{record("issues", "k", "1")}, {});
  } while (!status && status.error().retryable() && Clock::now() < deadline);
  others.request_stop();
  others.join();
  ASSERT_TRUE(status) << status.error().message;
  // On its way when its commit was given up, and written again with the next.
  EXPECT_THAT(issues(), ElementsAre("0", "1", "1"));
}

TEST_F(KafkaFaults, WhoIsCutOffSeesNoEnd) {
  send("a");
  auto source = member();
  ASSERT_TRUE(read_records(*source, 1));
  const core::StreamPartition where = source->positions().front().where;
  const auto sees_end = [&](bool wanted, seconds within) {
    const auto deadline = Clock::now() + within;
    while (Clock::now() < deadline) {
      (void)source->poll(milliseconds{50}, 10, [](const core::RecordView&) {});
      if (source->at_end(where) == wanted) return true;
    }
    return false;
  };
  ASSERT_TRUE(sees_end(true, seconds{10}));
  ASSERT_TRUE(cluster_->pause());
  EXPECT_TRUE(sees_end(false, seconds{6}));  // silence proves nothing now
  EXPECT_FALSE(sees_end(true, seconds{3}));
  ASSERT_TRUE(cluster_->resume());
  EXPECT_TRUE(sees_end(true, seconds{20}));
}

TEST_F(KafkaFaults, LeavingAFrozenClusterTakesNoLongerThanAllowed) {
  send("a");
  auto source = member();
  ASSERT_TRUE(read_records(*source, 1));
  auto publisher = committer(source.get());
  ASSERT_TRUE(publisher->commit(std::vector{record("issues", "k", "0")}, source->positions()));
  ASSERT_TRUE(cluster_->pause());
  EXPECT_LT(time([&] {
              source->close(milliseconds{1000});
              publisher.reset();
              source.reset();
            }),
            seconds{6});
  ASSERT_TRUE(cluster_->resume());
}

TEST_F(KafkaFaults, LeavingAClusterThatFrozeInTheMiddleOfAQuestionTakesNoLongerEither) {
  send("a");
  auto source = member();
  ASSERT_TRUE(read_records(*source, 1));
  ASSERT_TRUE(cluster_->pause());
  // Longer than the pause between two questions whether the cluster answers: one is under way now.
  std::this_thread::sleep_for(milliseconds{1500});
  EXPECT_LT(time([&] {
              source->close(milliseconds{1000});
              source.reset();
            }),
            seconds{6});
  ASSERT_TRUE(cluster_->resume());
}

TEST_F(KafkaFaults, ABrokerThatDiesDuringCommitsLosesAndRepeatsNothing) {
  auto publisher = committer(nullptr);
  std::vector<std::string> expected;
  for (int i = 0; i < 30; ++i) {
    if (i == 10) {
      ASSERT_TRUE(cluster_->kill());
      ASSERT_FALSE(publisher->commit(std::vector{record("issues", "k", std::to_string(i))}, {}));
      ASSERT_TRUE(cluster_->restart());
    }
    const std::vector<core::OutRecord> out = {record("issues", "k", std::to_string(i))};
    core::Status status = core::ok();
    const auto deadline = Clock::now() + seconds{40};
    do {
      status = publisher->commit(out, {});
    } while (!status && status.error().retryable() && Clock::now() < deadline);
    ASSERT_TRUE(status) << i << ": " << status.error().message;
    expected.push_back(std::to_string(i));
  }
  EXPECT_EQ(issues(), expected);
}

}  // namespace
}  // namespace tocsin::tests
