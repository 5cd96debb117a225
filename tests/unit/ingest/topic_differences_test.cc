// Topics that are there and are not what they should be: what is dangerous, what is set, what is not.
#include "ingest/kafka/topic_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tocsin::ingest {
namespace {

using Grade = core::TopicDifference::Grade;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TopicSpec wanted(const std::string& name, std::int32_t replication = 1) {
  TopicsConfig cfg;
  cfg.replication = replication;
  const auto plan = topic_plan(cfg);
  return *std::find_if(plan.begin(), plan.end(),
                       [&](const TopicSpec& one) { return one.name == name; });
}

TopicFound as_wanted(const TopicSpec& spec) {
  TopicFound out{
      spec.partitions, spec.replication, {{"retention.bytes", "-1"}, {"min.insync.replicas", "1"}}};
  for (const auto& [key, value] : spec.settings) out.settings[key] = value;
  return out;
}

struct Case {
  const char* topic;
  const char* key;
  const char* value;
  Grade grade;
  bool safe;
  const char* cost;
};

TEST(TopicDifferences, NoneWhereAllIsAsPlanned) {
  for (const std::int32_t replication : {1, 3}) {
    TopicsConfig cfg;
    cfg.replication = replication;
    for (const TopicSpec& spec : topic_plan(cfg)) {
      EXPECT_THAT(find_differences(spec, as_wanted(spec)), IsEmpty()) << spec.name;
    }
  }
}

TEST(TopicDifferences, EachSaysWhatItCosts) {
  const Case cases[] = {
      {"rules-state", "cleanup.policy", "delete", Grade::danger, true,
       "after a restart it is not there"},
      {"router-state", "cleanup.policy", "compact,delete", Grade::danger, true, "is deleted"},
      {"telemetry", "cleanup.policy", "compact", Grade::danger, true, "only the newest stays"},
      {"router-outbox", "cleanup.policy", "compact,delete", Grade::danger, true, "lost unread"},
      {"commands", "cleanup.policy", "delete", Grade::warning, true, "each start reads all"},
      {"commands", "cleanup.policy", "compact", Grade::warning, false, "it only grows"},
      {"telemetry", "retention.ms", "60000", Grade::danger, true, "for 1m misses records"},
      {"telemetry", "retention.ms", "7200000", Grade::warning, true, "for 2h misses records"},
      {"telemetry", "retention.ms", "-1", Grade::note, false, "more disk"},
      {"telemetry", "retention.bytes", "1000", Grade::warning, true, "oldest records"},
      {"issues", "max.message.bytes", "1000", Grade::warning, true, "refused"},
      {"issues", "max.message.bytes", "9000000", Grade::note, false, "larger"},
      {"issues", "min.insync.replicas", "2", Grade::danger, false, "nothing can be written"},
      {"issues", "message.timestamp.type", "LogAppendTime", Grade::warning, true, "the broker's"},
      {"rules-state", "segment.bytes", "1073741824", Grade::note, true, "compaction is later"},
      {"rules-state", "delete.retention.ms", "60000", Grade::warning, true, "for longer than 1m"},
      {"issues", "compression.type", "gzip", Grade::note, true, "again"},
  };
  for (const Case& one : cases) {
    const TopicSpec spec = wanted(one.topic);
    TopicFound found = as_wanted(spec);
    found.settings[one.key] = one.value;
    const auto differences = find_differences(spec, found);
    ASSERT_THAT(differences, SizeIs(1)) << one.topic << " " << one.key;
    EXPECT_EQ(differences[0].key, one.key);
    EXPECT_EQ(differences[0].found, one.value);
    EXPECT_EQ(differences[0].grade, one.grade) << one.topic << " " << one.key << " " << one.value;
    EXPECT_EQ(differences[0].safe, one.safe) << one.topic << " " << one.key << " " << one.value;
    EXPECT_EQ(differences[0].safe, differences[0].kept.empty()) << one.key;
    EXPECT_THAT(differences[0].cost, HasSubstr(one.cost));
  }
}

TEST(TopicDifferences, FewCopiesAreToldAndNotMoved) {
  const TopicSpec spec = wanted("issues", 3);
  TopicFound found = as_wanted(spec);
  found.replication = 1;
  found.settings["min.insync.replicas"] = "1";
  const auto differences = find_differences(spec, found);
  ASSERT_THAT(differences, SizeIs(2));
  for (const auto& one : differences) {
    EXPECT_EQ(one.grade, Grade::warning);
    EXPECT_FALSE(one.safe) << one.key;
  }
  found.replication = 3;
  const auto enough = find_differences(spec, found);
  ASSERT_THAT(enough, SizeIs(1));
  EXPECT_EQ(enough[0].key, "min.insync.replicas");
  EXPECT_TRUE(enough[0].safe);
}

TEST(TopicDifferences, TheMostDangerousComesFirst) {
  const TopicSpec spec = wanted("rules-state");
  TopicFound found = as_wanted(spec);
  found.partitions = 99;
  found.settings["segment.bytes"] = "1";
  found.settings["cleanup.policy"] = "delete";
  found.settings["retention.ms"] = "60000";
  const auto differences = find_differences(spec, found);
  ASSERT_THAT(differences, SizeIs(3));
  EXPECT_EQ(differences[0].key, "cleanup.policy");
  EXPECT_THAT(differences[0].cost, HasSubstr("for 1m is deleted"));
  EXPECT_EQ(differences[1].key, "partitions");
  EXPECT_EQ(differences[2].key, "segment.bytes");
}

}  // namespace
}  // namespace tocsin::ingest
