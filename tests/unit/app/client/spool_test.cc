#include "app/client/spool.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/topics.h"

namespace tocsin::app::client {
namespace {

struct Written {
  std::vector<std::string> values;
  core::Status answer = core::ok();
};

class Recorder final : public core::RecordPublisher {
 public:
  explicit Recorder(Written& written) : written_(written) {}
  core::Status publish(const core::OutRecord& record) override {
    if (written_.answer) written_.values.push_back(*record.value);
    return written_.answer;
  }
  core::Status flush(std::chrono::milliseconds) override { return written_.answer; }
  core::Status commit(std::span<const core::OutRecord>, std::span<const core::Position>) override {
    return core::ok();
  }
  core::Result<std::int32_t> partitions(std::string_view) override { return 1; }

 private:
  Written& written_;
};

core::OutRecord record(const std::string& value, const char* topic = core::topic::kTelemetry) {
  return {topic, "run", value};
}

TEST(Unconfirmed, KeepsTheNewestInTheirOrderUntilTheyAreConfirmed) {
  Unconfirmed waiting;
  const std::string large(Unconfirmed::kMostBytes / 4, 'x');
  for (const char* name : {"a", "b", "c", "d", "e"}) waiting.keep(record(name + large));
  const auto taken = waiting.take();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken.front().value->front(), 'c');
  EXPECT_EQ(taken.back().value->front(), 'e');
  waiting.keep(record("f"));
  waiting.confirmed();
  EXPECT_TRUE(waiting.take().empty());
}

TEST(Spool, MakesNothingUntilThereIsSomethingAndLeavesAcksOut) {
  Written written;
  int opened = 0;
  Spool spool("somewhere", [&]() -> core::Result<std::unique_ptr<core::RecordPublisher>> {
    ++opened;
    return std::unique_ptr<core::RecordPublisher>(std::make_unique<Recorder>(written));
  });
  EXPECT_TRUE(spool.add(record("an ack", core::topic::kAcks)));
  EXPECT_TRUE(spool.flush(std::chrono::milliseconds(1)));
  EXPECT_EQ(opened, 0);
  EXPECT_TRUE(spool.add(record("one")));
  EXPECT_TRUE(spool.add(record("two")));
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(spool.records(), 2U);
  EXPECT_EQ(written.values, (std::vector<std::string>{"one", "two"}));
  written.answer = core::Error{core::Code::unavailable, "the disk is full"};
  EXPECT_FALSE(spool.add(record("three")));
  EXPECT_EQ(spool.trouble(), "the disk is full");
  written.answer = core::ok();
  EXPECT_FALSE(spool.add(record("four"))) << "a hole in the middle would be worse than an end";
  EXPECT_EQ(spool.records(), 2U);
}

TEST(Spool, ADirectoryThatCannotBeOpenedIsTriedOnce) {
  int opened = 0;
  Spool spool("somewhere", [&]() -> core::Result<std::unique_ptr<core::RecordPublisher>> {
    ++opened;
    return core::Error{core::Code::unavailable, "read only"};
  });
  EXPECT_FALSE(spool.add(record("one")));
  EXPECT_FALSE(spool.add(record("two")));
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(spool.trouble(), "read only");
}

}  // namespace
}  // namespace tocsin::app::client
