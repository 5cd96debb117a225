#include "collectors/hook/publish/spool.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/frame.h"
#include "core/topics.h"
#include "ingest/ingest.h"
#include "tests/simulation/broker.h"

namespace tocsin::hook {
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

/// A place that is a recorder; nothing can be read of it.
SpoolPlace place(Written& written, int& opened) {
  SpoolPlace out;
  out.directory = "somewhere";
  out.write = [&]() -> core::Result<std::unique_ptr<core::RecordPublisher>> {
    ++opened;
    return std::unique_ptr<core::RecordPublisher>(std::make_unique<Recorder>(written));
  };
  out.remove = [] {};
  return out;
}

TEST(Spool, MakesNothingUntilThereIsSomethingAndEndsWithItsFirstFault) {
  Written written;
  int opened = 0;
  Spool spool(place(written, opened));
  EXPECT_TRUE(spool.flush(std::chrono::milliseconds(1)));
  EXPECT_EQ(opened, 0);
  EXPECT_TRUE(spool.add(record("one")));
  EXPECT_TRUE(spool.add(record("two")));
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(spool.waiting(), 2U);
  EXPECT_EQ(written.values, (std::vector<std::string>{"one", "two"}));
  written.answer = core::Error{core::Code::unavailable, "the disk is full"};
  EXPECT_FALSE(spool.add(record("three")));
  EXPECT_EQ(spool.trouble(), "the disk is full");
  written.answer = core::ok();
  EXPECT_FALSE(spool.add(record("four"))) << "a hole in the middle would be worse than an end";
  EXPECT_EQ(spool.waiting(), 2U);
}

TEST(Spool, ASlowDiskIsWaitedForAnotherTime) {
  Written written;
  int opened = 0;
  Spool spool(place(written, opened));
  EXPECT_TRUE(spool.add(record("one")));
  written.answer = core::Error{core::Code::deadline_exceeded, "not yet"};
  EXPECT_FALSE(spool.flush(std::chrono::milliseconds(1)));
  written.answer = core::ok();
  EXPECT_TRUE(spool.add(record("two")));
}

TEST(Spool, HasABound) {
  Written written;
  int opened = 0;
  SpoolPlace small = place(written, opened);
  small.most_bytes = 3000;
  Spool spool(small);
  EXPECT_TRUE(spool.add(record(std::string(2000, 'x'))));
  EXPECT_FALSE(spool.add(record(std::string(2000, 'x'))));
  EXPECT_TRUE(spool.add(record("small"))) << "what fits is taken";
  EXPECT_LE(spool.bytes(), 3000U);
  EXPECT_TRUE(spool.trouble().empty());
}

TEST(Spool, ADirectoryThatCannotBeOpenedIsTriedOnce) {
  int opened = 0;
  SpoolPlace broken;
  broken.directory = "somewhere";
  broken.write = [&]() -> core::Result<std::unique_ptr<core::RecordPublisher>> {
    ++opened;
    return core::Error{core::Code::unavailable, "read only"};
  };
  Spool spool(broken);
  EXPECT_FALSE(spool.add(record("one")));
  EXPECT_FALSE(spool.add(record("two")));
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(spool.trouble(), "read only");
}

/// A spool on a broker in memory, which reads back what was written.
class SpoolReplay : public ::testing::Test {
 protected:
  SpoolPlace on_disk() {
    SpoolPlace out;
    out.directory = "somewhere";
    out.write = [this] { return disk_->publisher({}); };
    out.read = [this] {
      ingest::SourceOptions options;
      options.topics = {core::topic::kTelemetry};
      options.start = ingest::Start::beginning;
      return disk_->source(options);
    };
    out.remove = [this] {
      ++removed_;
      disk_ = std::make_unique<simulation::MemoryBroker>();
    };
    return out;
  }
  /// What comes out, at most so many.
  std::vector<std::string> take(Spool& spool, std::size_t most) {
    std::vector<std::string> out;
    const auto all = spool.replay([&](const core::OutRecord& record) -> core::Status {
      if (out.size() == most) return core::Error{core::Code::resource_exhausted, "full"};
      out.push_back(*record.value);
      return core::ok();
    });
    EXPECT_TRUE(all) << all.error().message;
    last_was_all_ = *all;
    return out;
  }

  std::unique_ptr<simulation::MemoryBroker> disk_ = std::make_unique<simulation::MemoryBroker>();
  int removed_ = 0;
  bool last_was_all_ = false;
};

using Texts = std::vector<std::string>;

TEST_F(SpoolReplay, GivesEverythingOnceInOrderAndIsGone) {
  Spool spool(on_disk());
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(spool.add(record(text)));
  EXPECT_TRUE(spool.flush(std::chrono::milliseconds(100)));
  EXPECT_EQ(take(spool, 3), (Texts{"a", "b", "c"}));
  EXPECT_FALSE(last_was_all_);
  EXPECT_TRUE(spool.add(record("e")));  // comes meanwhile
  EXPECT_TRUE(spool.flush(std::chrono::milliseconds(100)));
  spool.confirmed();
  EXPECT_EQ(spool.waiting(), 2U);
  EXPECT_EQ(take(spool, 9), (Texts{"d", "e"}));
  EXPECT_TRUE(last_was_all_);
  EXPECT_EQ(removed_, 0);
  spool.confirmed();
  EXPECT_EQ(removed_, 1);
  EXPECT_EQ(spool.waiting(), 0U);
  EXPECT_EQ(spool.bytes(), 0U);
  EXPECT_EQ(spool.added_ever(), 5U);
  // The next outage begins anew.
  EXPECT_TRUE(spool.add(record("f")));
  EXPECT_TRUE(spool.flush(std::chrono::milliseconds(100)));
  EXPECT_EQ(take(spool, 9), (Texts{"f"}));
}

TEST_F(SpoolReplay, WhatIsNotConfirmedIsGivenAgain) {
  Spool spool(on_disk());
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(spool.add(record(text)));
  EXPECT_TRUE(spool.flush(std::chrono::milliseconds(100)));
  EXPECT_EQ(take(spool, 1), (Texts{"a"}));
  spool.confirmed();
  EXPECT_EQ(take(spool, 2), (Texts{"b", "c"}));
  EXPECT_EQ(spool.rewind(), 2U);
  EXPECT_EQ(spool.waiting(), 3U);
  EXPECT_EQ(take(spool, 9), (Texts{"b", "c", "d"}));
}

TEST_F(SpoolReplay, MarksFramesAndNothingElse) {
  ingest::FrameWriter writer;
  core::FrameHeader header;
  header.flags = core::frame_flag::kDegraded;
  const auto bytes = writer.lifecycle(header, R"({"event":"heartbeat"})").finish();
  ASSERT_TRUE(bytes);
  const std::string frame(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  Spool spool(on_disk());
  EXPECT_TRUE(spool.add(record(frame)));
  EXPECT_TRUE(spool.add(record(R"({"name":"loss"})")));
  EXPECT_TRUE(spool.flush(std::chrono::milliseconds(100)));
  const Texts out = take(spool, 9);
  ASSERT_EQ(out.size(), 2U);
  const auto decoded = ingest::decode_frame(std::as_bytes(std::span(out[0].data(), out[0].size())));
  ASSERT_TRUE(decoded) << ingest::to_string(decoded.error());
  EXPECT_EQ(decoded.frame().header().flags,
            core::frame_flag::kDegraded | core::frame_flag::kFromSpool);
  EXPECT_EQ(out[1], R"({"name":"loss"})");
}

}  // namespace
}  // namespace tocsin::hook
