// What every transport promises: one suite, run on memory, on the journal and on a real Kafka.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/contract/transport_contract.h"

namespace tocsin::tests {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

TEST_P(TransportContract, RecordsOfAKeyArriveInTheOrderTheyWereWritten) {
  publish(numbered(200));
  auto source = backend_->observer({"telemetry"});
  const auto read = read_records(*source, 200);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(*read, SizeIs(200));
  std::map<std::string, int> last;
  for (const auto& kept : *read) {
    const auto [it, first] = last.try_emplace(*kept.key, -1);
    EXPECT_LT(it->second, std::stoi(kept.value));
    it->second = std::stoi(kept.value);
  }
  EXPECT_THAT(last, SizeIs(5));
}

TEST_P(TransportContract, HeadersKeysTimesAndNullsSurvive) {
  core::OutRecord full = record("acks", "run", "value");
  full.headers = {{"ce_id", "42"}, {"empty", ""}};
  full.timestamp = 1'767'323'045'678'000'000;
  core::OutRecord tombstone = record("acks", "run", "");
  tombstone.value.reset();
  core::OutRecord bare = record("acks", "", "");
  bare.partition_key = "run";
  publish({full, tombstone, bare});

  auto source = backend_->observer({"acks"});
  const auto read = read_records(*source, 3, {"ce_id", "empty", "absent"});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(*read, SizeIs(3));
  const auto& [first, second, third] = std::tie((*read)[0], (*read)[1], (*read)[2]);
  EXPECT_EQ(first.topic, "acks");
  EXPECT_EQ(first.key, "run");
  EXPECT_EQ(first.value, "value");
  EXPECT_EQ(first.timestamp, full.timestamp);
  EXPECT_THAT(first.headers, ElementsAre(testing::Pair("ce_id", "42"), testing::Pair("empty", "")));
  EXPECT_FALSE(first.tombstone);
  EXPECT_TRUE(second.tombstone);
  EXPECT_EQ(third.key, std::nullopt);
  EXPECT_FALSE(third.tombstone);
  EXPECT_EQ(third.value, "");
}

TEST_P(TransportContract, RecordsOf900KilobytesPass) {
  std::mt19937_64 random(7);
  std::string big(900'000, '\0');
  for (char& c : big) c = static_cast<char>(random());
  publish({record("telemetry", "run", big), record("telemetry", "run", "after")});
  auto source = backend_->observer({"telemetry"});
  const auto read = read_records(*source, 2);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(*read, SizeIs(2));
  EXPECT_TRUE((*read)[0].value == big);
  EXPECT_EQ((*read)[1].value, "after");
}

TEST_P(TransportContract, ACommitMovesRecordsAndPositionsTogether) {
  publish(numbered(20));
  {
    auto source = backend_->member({"telemetry"});
    const auto read = read_records(*source, 20);
    ASSERT_TRUE(read) << read.error().message;
    auto committer = backend_->committer(*source);
    const std::vector<core::OutRecord> out = {record("issues", "run", "a"),
                                              record("rules-state", "unit", "b")};
    const auto status = committer->commit(out, source->positions());
    ASSERT_TRUE(status) << status.error().message;
    source->close(seconds{5});
  }
  auto issues = backend_->observer({"issues"});
  const auto seen = read_records(*issues, 1);
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_THAT(values(*seen), ElementsAre("a"));

  publish({record("telemetry", "run-0", "next")});
  auto successor = backend_->member({"telemetry"});
  const auto read = read_records(*successor, 1);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(values(*read), ElementsAre("next"));
}

TEST_P(TransportContract, ReadAllEndsWithTheNewestRecordOfEachKey) {
  std::vector<core::OutRecord> out;
  for (int i = 0; i < 50; ++i) {
    out.push_back(record("commands", "run/" + std::to_string(i % 7), std::to_string(i)));
    out.back().partition_key = "run";
  }
  out.push_back(record("commands", "run/0", ""));
  out.back().value.reset();
  out.back().partition_key = "run";
  publish(out);
  auto source = backend_->observer({"telemetry"});
  std::map<std::string, std::optional<std::string>> newest;
  for (std::int32_t partition = 0; partition < 2; ++partition) {
    if (backend_->kind() == BackendKind::journal && partition > 0) break;
    const auto status =
        source->read_all("commands", partition, std::nullopt, [&](const core::RecordView& view) {
          newest[std::string(*view.key)] =
              view.tombstone ? std::nullopt : std::optional(std::string(view.text()));
        });
    ASSERT_TRUE(status) << status.error().message;
  }
  ASSERT_THAT(newest, SizeIs(7));
  EXPECT_EQ(newest["run/0"], std::nullopt);
  for (int key = 1; key < 7; ++key) {
    EXPECT_EQ(newest["run/" + std::to_string(key)], std::to_string(49 - ((49 - key) % 7)));
  }
}

TEST_P(TransportContract, ReadAllSinceATimeBeginsAtItsFirstRecord) {
  // Of today: a broker deletes what is older than its topic keeps, at any moment.
  const core::WallTime start =
      std::chrono::floor<seconds>(std::chrono::system_clock::now()) - std::chrono::hours(6);
  const auto at = [&](int minute) { return start + std::chrono::minutes(minute); };
  std::vector<core::OutRecord> out;
  for (int i = 0; i < 300; ++i) {
    out.push_back(record("router-deliveries", "ntf", std::to_string(i)));
    out.back().timestamp = core::nanoseconds(at(i));
  }
  out.push_back(record("router-deliveries", "ntf", "of a clock that stepped back"));
  out.back().timestamp = core::nanoseconds(at(10));
  publish(out);
  auto source = backend_->observer({"telemetry"});
  const auto since = [&](std::optional<core::WallTime> time) {
    std::vector<std::string> all;
    for (std::int32_t partition = 0; partition < 2; ++partition) {
      if (backend_->kind() == BackendKind::journal && partition > 0) break;
      const auto status =
          source->read_all("router-deliveries", partition, time,
                           [&](const core::RecordView& view) { all.emplace_back(view.text()); });
      EXPECT_TRUE(status) << status.error().message;
    }
    return all;
  };
  const auto everything = since(std::nullopt);
  ASSERT_THAT(everything, SizeIs(301));
  const auto from = [&](int first) {
    return std::vector<std::string>(everything.begin() + first, everything.end());
  };
  EXPECT_EQ(since(at(-5)), everything);
  EXPECT_EQ(since(at(0)), everything);
  EXPECT_EQ(since(at(1)), from(1));
  EXPECT_EQ(since(at(200)), from(200));
  EXPECT_EQ(since(at(199) + seconds{1}), from(200));
  EXPECT_EQ(since(at(299)), from(299));
  EXPECT_THAT(since(at(300)), SizeIs(0));
  const auto unknown = source->read_all("no-such-topic", 0, at(0), [](const core::RecordView&) {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, core::Code::not_found) << unknown.error().message;
}

TEST_P(TransportContract, ReadAllOfAnEmptyTopicReturnsAtOnce) {
  auto source = backend_->observer({"telemetry"});
  int count = 0;
  const auto status =
      source->read_all("rules-state", 0, std::nullopt, [&](const core::RecordView&) { ++count; });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(count, 0);
  const auto since = source->read_all("rules-state", 0, core::wall_time(1),
                                      [&](const core::RecordView&) { ++count; });
  ASSERT_TRUE(since) << since.error().message;
  EXPECT_EQ(count, 0);
}

TEST_P(TransportContract, AFailedCommitLeavesNothingBehind) {
  publish(numbered(4));
  auto source = backend_->member({"telemetry"});
  ASSERT_TRUE(read_records(*source, 4));
  auto committer = backend_->committer(*source);
  const std::vector<core::OutRecord> bad = {record("issues", "run", "half"),
                                            record("no-such-topic", "run", "x")};
  const auto refused = committer->commit(bad, source->positions());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Code::not_found);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("no-such-topic"));

  const std::vector<core::OutRecord> good = {record("issues", "run", "whole")};
  const auto status = committer->commit(good, source->positions());
  ASSERT_TRUE(status) << status.error().message;
  auto issues = backend_->observer({"issues"});
  const auto seen = read_to_end(*issues);
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_THAT(values(*seen), ElementsAre("whole"));
}

TEST_P(TransportContract, PublishingToAnUnknownTopicNamesIt) {
  auto producer = backend_->producer();
  auto status = producer->publish(record("no-such-topic", "k", "v"));
  if (status) status = producer->flush(seconds{20});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::not_found);
  EXPECT_THAT(status.error().message, testing::HasSubstr("no-such-topic"));
}

TEST_P(TransportContract, AtEndMeansThatEverythingWasHandedOut) {
  publish(numbered(10));
  auto source = backend_->observer({"telemetry"});
  std::size_t count = 0;
  EXPECT_FALSE(source->at_end());
  for (int i = 0; i < 400 && !source->at_end(); ++i) {
    const auto polled =
        source->poll(milliseconds{50}, 3, [&](const core::RecordView&) { ++count; });
    ASSERT_TRUE(polled) << polled.error().message;
  }
  EXPECT_TRUE(source->at_end());
  EXPECT_EQ(count, 10U);
}

TEST_P(TransportContract, AReaderFromTheEndSeesOnlyWhatComesLater) {
  auto producer = backend_->producer();
  ASSERT_TRUE(producer->publish(record("telemetry", "run", "before")));
  ASSERT_TRUE(producer->flush(seconds{20}));
  ingest::SourceOptions options;
  options.topics = {"telemetry"};
  options.start = ingest::Start::end;
  auto source = backend_->source(options);
  const auto nothing = read_to_end(*source);
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_THAT(*nothing, SizeIs(0));
  ASSERT_TRUE(producer->publish(record("telemetry", "run", "after")));
  ASSERT_TRUE(producer->flush(seconds{20}));
  const auto read = read_records(*source, 1);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(values(*read), ElementsAre("after"));
}

TEST_P(TransportContract, PollHandsOutNoMoreThanAskedFor) {
  publish(numbered(10));
  auto source = backend_->observer({"telemetry"});
  std::size_t total = 0;
  for (int i = 0; i < 400 && total < 10; ++i) {
    std::size_t now = 0;
    const auto polled = source->poll(milliseconds{50}, 4, [&](const core::RecordView&) { ++now; });
    ASSERT_TRUE(polled) << polled.error().message;
    EXPECT_EQ(*polled, now);
    EXPECT_LE(now, 4U);
    total += now;
  }
  EXPECT_EQ(total, 10U);
}

TEST_P(TransportContract, ACommitterPublishesOutsideCommitsToo) {
  publish(numbered(1));
  auto source = backend_->member({"telemetry"});
  ASSERT_TRUE(read_records(*source, 1));
  auto committer = backend_->committer(*source);
  ASSERT_TRUE(committer->publish(record("router-deliveries", "one", "sent")));
  ASSERT_TRUE(committer->commit(std::vector{record("issues", "run", "a")}, source->positions()));
  ASSERT_TRUE(committer->flush(seconds{20}));
  auto deliveries = backend_->observer({"router-deliveries"});
  const auto read = read_records(*deliveries, 1);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(values(*read), ElementsAre("sent"));
}

TEST_P(TransportContract, AClosedSourceSaysSo) {
  auto source = backend_->member({"telemetry"});
  ASSERT_TRUE(source->poll(milliseconds{10}, 1, [](const core::RecordView&) {}));
  source->close(seconds{5});
  source->close(seconds{5});
  const auto polled = source->poll(milliseconds{10}, 1, [](const core::RecordView&) {});
  ASSERT_FALSE(polled);
  EXPECT_EQ(polled.error().code, core::Code::failed_precondition);
}

TEST_P(TransportContract, TheClusterAnswers) {
  const auto status = backend_->transport().ping(seconds{10});
  EXPECT_TRUE(status) << status.error().message;
  const auto states = backend_->transport().topic_states();
  ASSERT_TRUE(states) << states.error().message;
  EXPECT_THAT(*states, SizeIs(core::topics().size()));
  for (const auto& state : *states) EXPECT_EQ(state.partitions, state.wanted.partitions);
}

INSTANTIATE_TEST_SUITE_P(Transports, TransportContract,
                         testing::Values(BackendKind::memory, BackendKind::journal,
                                         BackendKind::kafka),
                         [](const auto& backend) { return name_of(backend.param); });

}  // namespace
}  // namespace tocsin::tests
