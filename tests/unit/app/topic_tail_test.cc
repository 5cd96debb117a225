// A topic that is read on beside a stage: batches, pauses, errors.
#include "app/stages/topic_tail.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

/// What a test lets a topic do, over all its sources.
struct TailTopic {
  std::vector<std::string> records;
  std::optional<core::Error> opening, reading;
  int opened = 0;
};

class TailSource final : public core::RecordSource {
 public:
  explicit TailSource(TailTopic& topic) : topic_(topic) {}
  core::Result<std::size_t> poll(std::chrono::milliseconds timeout, std::size_t most,
                                 core::RecordHandler handler) override {
    EXPECT_EQ(timeout, 0ms);
    std::size_t count = 0;
    for (; count < most && next_ < topic_.records.size(); ++count, ++next_) {
      core::RecordView record;
      record.key = topic_.records[next_];
      handler(record);
    }
    if (topic_.reading) return *topic_.reading;
    return count;
  }
  core::Status seek(const core::Position&) override { return core::ok(); }
  core::Status pause(std::span<const core::StreamPartition>) override { return core::ok(); }
  core::Status resume(std::span<const core::StreamPartition>) override { return core::ok(); }
  [[nodiscard]] std::vector<core::Position> positions() const override { return {}; }
  [[nodiscard]] bool at_end() const override { return next_ == topic_.records.size(); }
  [[nodiscard]] bool at_end(const core::StreamPartition&) const override { return at_end(); }
  void wake() override {}
  core::Status read_all(std::string_view, std::int32_t, std::optional<core::WallTime>,
                        core::RecordHandler) override {
    return core::ok();
  }
  void close(std::chrono::milliseconds) override {}

 private:
  TailTopic& topic_;
  std::size_t next_ = 0;
};

class TailLog final : public core::Log {
 public:
  void write(core::Level level, std::string_view event,
             std::initializer_list<core::Field>) override {
    EXPECT_EQ(level, core::Level::warn);
    events.emplace_back(event);
  }
  std::vector<std::string> events;
};

class TailTest : public testing::Test {
 protected:
  TopicTail tail(core::Duration pause) {
    return {[this]() -> core::Result<std::unique_ptr<core::RecordSource>> {
              ++topic_.opened;
              if (topic_.opening) return *topic_.opening;
              return std::unique_ptr<core::RecordSource>(std::make_unique<TailSource>(topic_));
            },
            log_, "not_read", pause};
  }
  bool read(TopicTail& tail, core::Duration now) {
    return tail.read(now,
                     [this](const core::RecordView& record) { seen_.emplace_back(*record.key); });
  }

  TailTopic topic_;
  TailLog log_;
  std::vector<std::string> seen_;
};

TEST_F(TailTest, ReadsOnWhereItWas) {
  topic_.records = {"a", "b"};
  TopicTail tail = this->tail({});
  EXPECT_EQ(topic_.opened, 0);  // nothing before the first read
  EXPECT_TRUE(read(tail, 1s));
  topic_.records.emplace_back("c");
  EXPECT_TRUE(read(tail, 1s));
  EXPECT_EQ(seen_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(topic_.opened, 1);
}

TEST_F(TailTest, AReadTakesABoundedNumber) {
  topic_.records.assign(2500, "x");
  TopicTail tail = this->tail(1s);
  for (const std::size_t wanted : {1000U, 2000U, 2500U}) {
    EXPECT_TRUE(read(tail, 1s));  // more may be there: no pause
    EXPECT_EQ(seen_.size(), wanted);
  }
}

TEST_F(TailTest, PausesAfterAReadThatFoundNothing) {
  TopicTail tail = this->tail(1s);
  EXPECT_TRUE(read(tail, 10s));
  topic_.records.emplace_back("a");
  EXPECT_FALSE(read(tail, 10999ms));
  EXPECT_TRUE(seen_.empty());
  EXPECT_TRUE(read(tail, 11s));
  EXPECT_EQ(seen_.size(), 1U);
}

TEST_F(TailTest, ATopicThatCannotBeOpenedIsTriedAgainLater) {
  topic_.opening = core::Error{core::Code::unavailable, "away"};
  TopicTail tail = this->tail({});
  EXPECT_FALSE(read(tail, 10s));
  topic_.opening.reset();
  EXPECT_FALSE(read(tail, 14999ms));
  EXPECT_EQ(topic_.opened, 1);
  EXPECT_TRUE(read(tail, 15s));
  EXPECT_EQ(log_.events, std::vector<std::string>{"not_read"});
}

TEST_F(TailTest, AfterAnErrorItIsReadFromItsBeginning) {
  topic_.records = {"a"};
  topic_.reading = core::Error{core::Code::failed_precondition, "fenced"};
  TopicTail tail = this->tail({});
  EXPECT_FALSE(read(tail, 10s));
  topic_.reading.reset();
  EXPECT_TRUE(read(tail, 15s));
  EXPECT_EQ(seen_, (std::vector<std::string>{"a", "a"}));
  EXPECT_EQ(topic_.opened, 2);
}

// Compaction leaves gaps.
TEST_F(TailTest, AGapIsNoError) {
  topic_.records = {"a"};
  topic_.reading = core::Error{core::Code::data_loss, "gap"};
  TopicTail tail = this->tail({});
  EXPECT_TRUE(read(tail, 10s));
  EXPECT_TRUE(read(tail, 10s));
  EXPECT_EQ(topic_.opened, 1);
  EXPECT_TRUE(log_.events.empty());
}

TEST_F(TailTest, StartingOverForgetsThePauseAndThePlace) {
  topic_.records = {"a"};
  TopicTail tail = this->tail(1min);
  EXPECT_TRUE(read(tail, 10s));
  EXPECT_TRUE(read(tail, 10s));  // found nothing
  EXPECT_FALSE(read(tail, 11s));
  tail.start_over();
  EXPECT_TRUE(read(tail, 11s));
  EXPECT_EQ(seen_, (std::vector<std::string>{"a", "a"}));
}

TEST_F(TailTest, WithoutATopicNothingIsRead) {
  TopicTail tail({}, log_, "not_read");
  EXPECT_FALSE(read(tail, 10s));
  EXPECT_TRUE(log_.events.empty());
}

}  // namespace
}  // namespace tocsin::app
