// What only Kafka promises: groups, fencing, positions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

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

/// Commits what was read when partitions go, as an engine does.
class Member final : public core::AssignmentListener {
 public:
  Member(Backend& backend, const std::string& id) {
    source_ = backend.member({"telemetry"}, this);
    ingest::PublisherOptions options;
    options.transactional_id = backend.topics().prefix + "-" + id;
    options.source = source_.get();
    auto publisher = backend.transport().publisher(options);
    EXPECT_TRUE(publisher) << publisher.error().message;
    publisher_ = std::move(*publisher);
  }
  void assigned(std::span<const core::Position> committed) override {
    std::vector<core::StreamPartition> all;
    for (const auto& position : committed) {
      all.push_back(position.where);
      owned.insert(position.where.partition);
    }
    EXPECT_TRUE(source_->resume(all));
  }
  void revoked(std::span<const core::StreamPartition> partitions) override {
    const auto status = commit();
    EXPECT_TRUE(status) << status.error().message;
    for (const auto& where : partitions) owned.erase(where.partition);
  }
  void lost(std::span<const core::StreamPartition> partitions) override {
    pending_.clear();
    for (const auto& where : partitions) owned.erase(where.partition);
  }
  core::Status poll() {
    const auto polled = source_->poll(milliseconds{20}, 10, [this](const core::RecordView& view) {
      pending_.push_back(record("issues", std::string(*view.key), std::string(view.text())));
    });
    return polled ? core::ok() : core::Status(polled.error());
  }
  core::Status commit() {
    auto status = publisher_->commit(pending_, source_->positions());
    if (status) pending_.clear();
    return status;
  }
  core::RecordSource& source() { return *source_; }
  void close() { source_->close(seconds{5}); }

  std::set<std::int32_t> owned;

 private:
  std::unique_ptr<core::RecordSource> source_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  std::vector<core::OutRecord> pending_;
};

std::unique_ptr<Backend> open_kafka_backend() {
  auto backend = Backend::open(BackendKind::kafka);
  EXPECT_TRUE(backend) << backend.error().message;
  return backend ? std::move(*backend) : nullptr;
}

TEST(KafkaGroup, PartitionsAreHandedOverWithoutLossOrRepetition) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto producer = backend->producer();
  int sent = 0;
  const auto send = [&](int count) {
    for (int i = 0; i < count; ++i, ++sent) {
      ASSERT_TRUE(producer->publish(
          record("telemetry", "run-" + std::to_string(sent % 8), std::to_string(sent))));
    }
    ASSERT_TRUE(producer->flush(seconds{20}));
  };
  const auto turn = [](std::vector<Member*> members, const std::function<bool()>& until) {
    const auto deadline = Clock::now() + seconds{30};
    while (!until() && Clock::now() < deadline) {
      for (auto* member : members) ASSERT_TRUE(member->poll());
    }
    EXPECT_TRUE(until());
  };
  send(200);
  Member first(*backend, "a");
  turn({&first}, [&] { return first.owned.size() == 2; });
  Member second(*backend, "b");
  turn({&first, &second}, [&] { return first.owned.size() == 1 && second.owned.size() == 1; });
  send(200);
  for (int i = 0; i < 10; ++i) turn({&first, &second}, [] { return true; });
  first.close();  // revoked() commits what it has
  EXPECT_TRUE(first.owned.empty());
  turn({&second}, [&] { return second.owned.size() == 2; });
  send(100);
  turn({&second}, [&] { return second.source().at_end(); });
  ASSERT_TRUE(second.commit());

  auto reader = backend->observer({"issues"});
  const auto all = read_to_end(*reader);
  ASSERT_TRUE(all) << all.error().message;
  std::set<std::string> distinct;
  for (const auto& kept : *all) distinct.insert(kept.value);
  EXPECT_EQ(distinct.size(), 500U);
  EXPECT_EQ(all->size(), 500U);
}

TEST(KafkaGroup, APredecessorWithTheSameTransactionalIdIsFenced) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  ingest::PublisherOptions options;
  options.transactional_id = backend->topics().prefix + "-same";
  auto old = backend->transport().publisher(options);
  ASSERT_TRUE(old);
  ASSERT_TRUE((*old)->commit(std::vector{record("issues", "k", "old")}, {}));
  auto successor = backend->transport().publisher(options);
  ASSERT_TRUE(successor);
  // Opening it is enough: what the successor reads back from here on is the last word.
  const auto fenced = (*old)->commit(std::vector{record("issues", "k", "zombie")}, {});
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().code, core::Code::failed_precondition) << fenced.error().message;
  const auto again = (*old)->commit(std::vector{record("issues", "k", "zombie")}, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, core::Code::failed_precondition);
  ASSERT_TRUE((*successor)->commit(std::vector{record("issues", "k", "new")}, {}));
  auto reader = backend->observer({"issues"});
  const auto all = read_to_end(*reader);
  ASSERT_TRUE(all);
  ASSERT_THAT(*all, SizeIs(2));
  EXPECT_EQ((*all)[1].value, "new");
}

TEST(KafkaGroup, PositionsOfAMemberThatLeftAreNotCommitted) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto producer = backend->producer();
  ASSERT_TRUE(producer->publish(record("telemetry", "run", "x")));
  ASSERT_TRUE(producer->flush(seconds{20}));
  auto source = backend->member({"telemetry"});
  ASSERT_TRUE(read_records(*source, 1));
  auto committer = backend->committer(*source);
  const auto positions = source->positions();
  source->close(seconds{5});
  const auto status = committer->commit(std::vector{record("issues", "k", "v")}, positions);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::failed_precondition);
  auto reader = backend->observer({"issues"});
  const auto all = read_to_end(*reader);
  ASSERT_TRUE(all);
  EXPECT_THAT(*all, SizeIs(0));
}

TEST(KafkaGroup, AtLeastOnceStoresPositionsAfterTheRecords) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto producer = backend->producer();
  ASSERT_TRUE(producer->publish(record("telemetry", "run", "x")));
  ASSERT_TRUE(producer->flush(seconds{20}));
  {
    auto source = backend->member({"telemetry"});
    ASSERT_TRUE(read_records(*source, 1));
    ingest::PublisherOptions options;
    options.source = source.get();
    auto plain = backend->transport().publisher(options);
    ASSERT_TRUE(plain);
    const auto status =
        (*plain)->commit(std::vector{record("issues", "k", "v")}, source->positions());
    ASSERT_TRUE(status) << status.error().message;
    source->close(seconds{5});
  }
  ASSERT_TRUE(producer->publish(record("telemetry", "run", "y")));
  ASSERT_TRUE(producer->flush(seconds{20}));
  auto successor = backend->member({"telemetry"});
  const auto read = read_records(*successor, 1);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->front().value, "y");
}

TEST(KafkaGroup, WhatIsWrittenAheadIsReadableBeforeItsCommitWhichStoresPositionsBehindIt) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto producer = backend->producer();
  ASSERT_TRUE(producer->publish(record("telemetry", "run", "x")));
  ASSERT_TRUE(producer->flush(seconds{20}));
  auto source = backend->member({"telemetry"});
  ASSERT_TRUE(read_records(*source, 1));
  ingest::PublisherOptions options;
  options.source = source.get();
  options.linger = milliseconds{0};
  auto plain = backend->transport().publisher(options);
  ASSERT_TRUE(plain);
  // The cluster has to be asked first how many partitions the topic has.
  EXPECT_FALSE((*plain)->write_ahead(record("issues", "k", "0")));
  ASSERT_TRUE((*plain)->commit(std::vector{record("issues", "k", "1")}, {}));
  ASSERT_TRUE((*plain)->write_ahead(record("issues", "k", "2")));
  auto reader = backend->observer({"issues"});
  const auto early = read_records(*reader, 2);
  ASSERT_TRUE(early) << early.error().message;
  ASSERT_THAT(*early, SizeIs(2));
  EXPECT_EQ(early->back().value, "2");
  ASSERT_TRUE((*plain)->write_ahead(record("issues", "k", "3")));
  const auto status = (*plain)->commit({}, source->positions());
  ASSERT_TRUE(status) << status.error().message;
  const auto late = read_records(*reader, 1);
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_EQ(late->front().value, "3");
  source->close(seconds{5});
  ASSERT_TRUE(producer->publish(record("telemetry", "run", "y")));
  ASSERT_TRUE(producer->flush(seconds{20}));
  auto successor = backend->member({"telemetry"});
  const auto read = read_records(*successor, 1);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->front().value, "y");
}

TEST(KafkaGroup, NothingIsWrittenAheadOfATransaction) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto source = backend->member({"telemetry"});
  auto committer = backend->committer(*source);
  ASSERT_TRUE(committer->commit(std::vector{record("issues", "k", "1")}, {}));
  EXPECT_FALSE(committer->write_ahead(record("issues", "k", "2")));
}

TEST(KafkaGroup, BesideATransactionOnlyWhatMayGoesAheadAndTheRestIsFenced) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto source = backend->member({"telemetry"});
  ingest::PublisherOptions options;
  options.source = source.get();
  options.transactional_id = unique_name("ahead");
  options.ahead = true;
  options.linger = milliseconds{0};
  auto opened = backend->transport().publisher(options);
  ASSERT_TRUE(opened) << opened.error().message;
  auto& committer = **opened;
  ASSERT_TRUE(committer.commit(std::vector{record("issues", "k", "1")}, {}));
  ASSERT_TRUE(committer.write_ahead(record("issues", "k", "2")));
  auto reader = backend->observer({"issues"});
  const auto early = read_records(*reader, 2);
  ASSERT_TRUE(early) << early.error().message;
  ASSERT_THAT(*early, SizeIs(2));
  EXPECT_EQ(early->back().value, "2");
  ASSERT_TRUE(committer.commit({}, {}));  // nothing but what is on its way
  ASSERT_TRUE(committer.commit(std::vector{record("issues", "k", "3")}, {}));
  // A newer process has the id: what was replaced can still say something, but commit nothing.
  auto successor = backend->transport().publisher(options);
  ASSERT_TRUE(successor) << successor.error().message;
  const auto fenced = committer.commit(std::vector{record("issues", "k", "4")}, {});
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().code, core::Code::failed_precondition) << fenced.error().message;
  ASSERT_TRUE((*successor)->commit(std::vector{record("issues", "k", "5")}, {}));
  const auto late = read_records(*reader, 2);
  ASSERT_TRUE(late) << late.error().message;
  ASSERT_THAT(*late, SizeIs(2));
  EXPECT_EQ(late->front().value, "3");
  EXPECT_EQ(late->back().value, "5");
}

TEST(KafkaPositions, APositionThatRetentionTookIsAGapAndReadingGoesOn) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto producer = backend->producer();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(producer->publish(record("registry", "run", std::to_string(i))));
  }
  ASSERT_TRUE(producer->flush(seconds{20}));
  auto source = backend->observer({"registry"});
  const auto all = read_records(*source, 5);
  ASSERT_TRUE(all);
  ASSERT_THAT(*all, SizeIs(5));
  // Beyond the end is as little there as before the beginning.
  ASSERT_TRUE(source->seek({{"registry", all->front().partition}, 1'000'000}));
  core::Status lost = core::ok();
  std::vector<std::string> again;
  const auto deadline = Clock::now() + seconds{20};
  while (again.size() < 5 && Clock::now() < deadline) {
    const auto polled = source->poll(milliseconds{100}, 10, [&](const core::RecordView& view) {
      again.emplace_back(view.text());
    });
    if (!polled) lost = polled.error();
  }
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, core::Code::data_loss);
  EXPECT_THAT(lost.error().message, HasSubstr("1000000"));
  EXPECT_THAT(again, ElementsAre("0", "1", "2", "3", "4"));
}

TEST(KafkaPositions, ABacklogOfSeveralQueuesIsReadInOrderToItsEnd) {
  auto backend = open_kafka_backend();
  ASSERT_NE(backend, nullptr);
  auto producer = backend->producer();
  // Several times what a reader has read ahead.
  constexpr std::size_t kBytes = 256 << 10;
  constexpr int kRecords = 300;
  for (int i = 0; i < kRecords; ++i) {
    std::string text = std::to_string(i);
    text.resize(kBytes, '.');
    while (!producer->publish(record("telemetry", "run", text))) {
      ASSERT_TRUE(producer->flush(seconds{20}));
    }
  }
  ASSERT_TRUE(producer->flush(seconds{60}));
  const auto expect_all = [&](core::RecordSource& source, const auto& read) {
    int next = 0;
    std::int32_t partition = -1;
    const auto check = [&](const core::RecordView& view) {
      EXPECT_EQ(view.value.size(), kBytes);
      EXPECT_EQ(std::stoi(std::string(view.text().substr(0, 8))), next++);
      partition = view.partition;
    };
    const auto deadline = Clock::now() + seconds{60};
    while (next < kRecords && Clock::now() < deadline && read(source, check)) continue;
    EXPECT_EQ(next, kRecords);
    return partition;
  };
  auto source = backend->observer({"telemetry"});
  const std::int32_t partition =
      expect_all(*source, [](core::RecordSource& from, core::RecordHandler handler) {
        return from.poll(milliseconds{100}, 100, handler).has_value();
      });
  expect_all(*source, [&](core::RecordSource& from, core::RecordHandler handler) {
    return static_cast<bool>(from.read_all("telemetry", partition, std::nullopt, handler));
  });
}

}  // namespace
}  // namespace tocsin::tests
