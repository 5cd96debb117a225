// The size of control.db: a storm in one topic takes nothing of the others, and nothing that is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/contract/journal_fixture.h"

namespace tocsin::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class JournalControlLimit : public Journal {
 protected:
  static constexpr std::uint64_t kLimit = 8 << 20;

  JournalControlLimit() {
    config_.journal_control_bytes.count = kLimit;
    close();
    transport_ = open();
  }
  void storm(const std::string& topic, int records) {
    for (int i = 0; i < records; i += 100) {
      std::vector<core::OutRecord> batch;
      for (int k = 0; k < 100; ++k) {
        batch.push_back(record(topic, "key", std::to_string(i + k) + std::string(2000, 'x')));
      }
      ASSERT_TRUE(publisher()->commit(batch, {}));
      const auto status = transport_->apply_retention(wall_now());
      ASSERT_TRUE(status) << status.error().message;
    }
  }
  std::int64_t count(const std::string& table) {
    return sql("control.db", "SELECT count(*) FROM " + table);
  }
  std::uint64_t used() {
    return static_cast<std::uint64_t>(
        sql("control.db",
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
            "pragma_freelist_count, pragma_page_size"));
  }
};

TEST_F(JournalControlLimit, AStormOfOneTopicTakesNothingOfTheOthers) {
  put("issues", "run", "issue");
  put("router-outbox", "group", "message");
  put("router-state", "unit", "state");
  put("dlq", "topic", "letter");
  sql("control.db",
      "INSERT INTO position VALUES('route', 'issues', 1), ('deliver', 'router-outbox', 1)");
  storm("router-deliveries", 12'000);  // 24 MB
  EXPECT_LE(used(), kLimit);
  EXPECT_GT(count("router_deliveries"), 1000);
  EXPECT_THAT(texts(*reader({"router-deliveries"})).back(), HasSubstr("11999x"));
  EXPECT_THAT(texts(*reader({"issues"})), ElementsAre("issue"));
  EXPECT_THAT(texts(*reader({"router-outbox"})), ElementsAre("message"));
  EXPECT_THAT(texts(*reader({"dlq"})), ElementsAre("letter"));
  EXPECT_EQ(state("router-state").size(), 1U);
}

TEST_F(JournalControlLimit, WhatNobodyHasReadYetStays) {
  storm("issues", 6000);  // 12 MB
  EXPECT_EQ(count("issues"), 6000);
  sql("control.db", "INSERT INTO position VALUES('route', 'issues', 5000)");
  storm("issues", 100);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(transport_->apply_retention(wall_now()));
  EXPECT_LE(used(), kLimit);
  EXPECT_GE(count("issues"), 1100);
}

TEST_F(JournalControlLimit, NotificationsThatAreOpenAndTheirDeliveriesStay) {
  put("router-outbox", "group", "done");
  storm("router-deliveries", 1000);
  put("router-outbox", "group", "open");
  sql("control.db", "INSERT INTO position VALUES('deliver', 'router-outbox', 1)");
  storm("router-deliveries", 6000);
  EXPECT_THAT(texts(*reader({"router-outbox"})).back(), "open");
  EXPECT_EQ(count("router_deliveries"), 6000) << "those since the open one; the older are gone";
  EXPECT_THAT(transport_->space_warning(), HasSubstr("journal_control_bytes"));
  sql("control.db", "UPDATE position SET next = 2");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(transport_->apply_retention(wall_now()));
  EXPECT_LE(used(), kLimit);
}

TEST_F(JournalControlLimit, TheNewestOfEachKeyNeverGoes) {
  for (int i = 0; i < 60; ++i) {
    std::vector<core::OutRecord> batch;
    for (int k = 0; k < 100; ++k) {
      batch.push_back(record("router-state", std::to_string(100 * i + k), std::string(2000, 'x')));
    }
    ASSERT_TRUE(publisher()->commit(batch, {}));
  }
  put("dlq", "topic", "letter");
  ASSERT_TRUE(transport_->apply_retention(wall_now()));
  ASSERT_TRUE(transport_->apply_retention(wall_now()));
  EXPECT_EQ(count("router_state"), 6000);
  EXPECT_THAT(transport_->space_warning(), HasSubstr("control.db holds"));
}

TEST_F(JournalControlLimit, AnOrdinaryJournalIsNothingToWarnOf) {
  put("issues", "run", "issue");
  EXPECT_EQ(transport_->space_warning(), "");
}

}  // namespace
}  // namespace tocsin::tests
