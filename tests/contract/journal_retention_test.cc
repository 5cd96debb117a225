// What the keeper takes, what it leaves, and what readers are told of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/contract/journal_fixture.h"

namespace tocsin::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class JournalRetention : public Journal {
 protected:
  void put_dated(const std::string& topic, const std::string& key, const std::string& value,
                 core::Duration age) {
    auto old = record(topic, key, value);
    old.timestamp = core::nanoseconds(wall_now() - age);
    ASSERT_TRUE(publisher()->commit(std::vector{old}, {}));
  }
  void keep(int times = 1) {
    for (int i = 0; i < times; ++i) {
      const auto status = transport_->apply_retention(wall_now());
      ASSERT_TRUE(status) << status.error().message;
    }
  }
};

TEST_F(JournalRetention, EachTopicHasItsOwnAge) {
  for (const char* topic : {"telemetry", "acks", "issues", "router-deliveries"}) {
    put_dated(topic, "run", "old", hours{24 * 40});
    put_dated(topic, "run", "young", hours{1});
  }
  put_dated("telemetry", "run", "three days", hours{24 * 3 + 1});
  put_dated("router-state", "group", "state", hours{24 * 4000});
  put_dated("rules-state", "unit", "state", hours{24 * 4000});
  keep();
  EXPECT_EQ(sql("telemetry.db", "SELECT count(*) FROM telemetry"), 0);  // oldest first, no holes
  EXPECT_THAT(texts(*reader({"acks"})), ElementsAre("young"));
  EXPECT_THAT(texts(*reader({"issues"})), ElementsAre("young"));
  EXPECT_THAT(texts(*reader({"router-deliveries"})), ElementsAre("old", "young"));  // 90 days
  EXPECT_EQ(state("router-state").size(), 1U);
  EXPECT_EQ(state("rules-state").size(), 1U);
}

TEST_F(JournalRetention, TelemetryByItsSizeNeverTakesIssuesNorAcks) {
  config_.journal_max_bytes.count = 20 << 20;
  close();
  transport_ = open();
  put("issues", "run", "issue");
  put("router-outbox", "group", "message");
  put("rules-state", "unit", "state");
  put("acks", "run", "ack");
  auto hook = publisher();
  for (int i = 0; i < 50; ++i) {
    std::vector<core::OutRecord> batch;
    for (int k = 0; k < 100; ++k) {
      batch.push_back(record("telemetry", "run", std::to_string(i) + std::string(15'000, 'x')));
    }
    ASSERT_TRUE(hook->commit(batch, {}));  // 75 MB
    keep();
  }
  const auto used = sql("telemetry.db",
                        "SELECT (page_count - freelist_count) * page_size FROM "
                        "pragma_page_count, pragma_freelist_count, pragma_page_size");
  EXPECT_LE(used, 20 << 20);
  EXPECT_GT(used, 5 << 20);
  EXPECT_THAT(texts(*reader({"issues"})), ElementsAre("issue"));
  EXPECT_THAT(texts(*reader({"router-outbox"})), ElementsAre("message"));
  EXPECT_THAT(texts(*reader({"acks"})), ElementsAre("ack"));
  EXPECT_EQ(state("rules-state").size(), 1U);
  EXPECT_THAT(texts(*reader({"telemetry"})).back(), HasSubstr("49x"));
  // The files stay small, too: freed pages are used again, and logs start over.
  EXPECT_LT(fs::file_size(file("telemetry.db")), 60U << 20);
  EXPECT_LT(fs::file_size(file("telemetry.db-wal")), 20U << 20);
}

std::uint64_t bytes_read() {
  std::ifstream in("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  in >> name >> value;
  EXPECT_EQ(name, "rchar:");
  return value;
}

TEST_F(JournalRetention, WhereNothingIsTooOldHardlyAnythingIsRead) {
  std::vector<core::OutRecord> messages;
  for (int i = 0; i < 500; ++i) {
    messages.push_back(record("router-outbox", "group", std::string(12'000, 'x')));
  }
  ASSERT_TRUE(publisher()->commit(messages, {}));
  keep();
  const std::uint64_t before = bytes_read();
  keep(20);
  EXPECT_LT(bytes_read() - before, 500U * 12'000);  // once would be as much
}

TEST_F(JournalRetention, WhereThereIsNothingToTakeTheStateIsNotReadAgainAndAgain) {
  constexpr std::uint64_t kState = 20 << 20;
  for (int i = 0; i < 20; ++i) {
    std::vector<core::OutRecord> batch;
    for (int k = 0; k < 100; ++k) {
      batch.push_back(record("router-state", "issue/" + std::to_string(100 * i + k),
                             std::string(kState / 2000, 'x')));
    }
    ASSERT_TRUE(publisher()->commit(batch, {}));
  }
  keep(2);
  const std::uint64_t before = bytes_read();
  keep(20);
  EXPECT_LT(bytes_read() - before, kState);
}

TEST_F(JournalRetention, SpaceThatABurstLeftIsGivenBackInSteps) {
  auto hook = publisher();
  for (int i = 0; i < 20; ++i) {
    const std::vector<core::OutRecord> batch(100,
                                             record("telemetry", "run", std::string(15'000, 'x')));
    ASSERT_TRUE(hook->commit(batch, {}));
  }
  keep();
  const auto before = fs::file_size(file("telemetry.db"));
  sql("telemetry.db", "DELETE FROM telemetry");
  keep();
  const auto step = fs::file_size(file("telemetry.db"));
  EXPECT_LT(before - step, 8U << 20);  // nobody waits for all of it
  keep(10);
  EXPECT_LT(fs::file_size(file("telemetry.db")), 20U << 20);
}

TEST_F(JournalRetention, APositionThatRetentionTookIsToldOnce) {
  auto source = reader({"telemetry"});
  put("telemetry", "run", "read");
  ASSERT_THAT(texts(*source), ElementsAre("read"));
  for (const char* text : {"missed 1", "missed 2", "there"}) put("telemetry", "run", text);
  sql("telemetry.db", "DELETE FROM telemetry WHERE id < 3");
  const auto gap = source->poll(milliseconds{1}, 100, [](const core::RecordView&) {});
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, core::Code::data_loss);
  EXPECT_THAT(gap.error().message, HasSubstr("records 1 to 2 of telemetry"));
  EXPECT_THAT(texts(*source), ElementsAre("there"));
}

TEST_F(JournalRetention, LosingAllThereWasIsToldToo) {
  auto source = reader({"telemetry"});
  put("telemetry", "run", "read");
  ASSERT_THAT(texts(*source), ElementsAre("read"));
  put("telemetry", "run", "missed");
  sql("telemetry.db", "DELETE FROM telemetry");
  const auto gap = source->poll(milliseconds{1}, 100, [](const core::RecordView&) {});
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, core::Code::data_loss);
  put("telemetry", "run", "next");
  EXPECT_THAT(texts(*source), ElementsAre("next"));
}

TEST_F(JournalRetention, ATombstoneGoesAfterADayAndTheKeyWithIt) {
  for (const auto age : {hours{25}, hours{23}}) {
    auto withdrawn = record("registry", "run-" + std::to_string(age.count()), "");
    withdrawn.value.reset();
    withdrawn.timestamp = core::nanoseconds(wall_now() - age);
    ASSERT_TRUE(publisher()->commit(std::vector{withdrawn}, {}));
  }
  put_dated("registry", "run", "kept", hours{25});
  keep();
  const auto left = state("registry");
  EXPECT_THAT(left, SizeIs(2));
  EXPECT_THAT(left, Contains(testing::Key("run-23")));
  EXPECT_THAT(left, Contains(testing::Key("run")));
}

TEST_F(JournalRetention, ARecordFromTheFutureHoldsNothingBack) {
  put_dated("telemetry", "run", "from a wrong clock", -hours{24 * 365});
  put_dated("telemetry", "run", "old", hours{24 * 10});
  put("telemetry", "run", "young");
  keep();
  EXPECT_THAT(texts(*reader({"telemetry"})), ElementsAre("young"));
}

TEST_F(JournalRetention, WhatIsTooOldBehindARecordFromTheFutureGoesWithinAMinute) {
  put_dated("telemetry", "run", "from a wrong clock", -hours{24 * 365});
  keep();
  put_dated("telemetry", "run", "old", hours{24 * 10});
  put("telemetry", "run", "young");
  ASSERT_TRUE(transport_->apply_retention(wall_now() + std::chrono::seconds{61}));
  EXPECT_THAT(texts(*reader({"telemetry"})), ElementsAre("young"));
}

}  // namespace
}  // namespace tocsin::tests
