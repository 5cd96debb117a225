// The topics, their export, and the sections `topics` and `transport`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::ingest {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

TopicSpec topic(const std::vector<TopicSpec>& plan, std::string_view name) {
  const auto it = std::find_if(plan.begin(), plan.end(),
                               [&](const TopicSpec& spec) { return spec.name == name; });
  EXPECT_NE(it, plan.end()) << name;
  return it == plan.end() ? TopicSpec{} : *it;
}

TEST(TopicPlan, HasEveryDeclaredTopicInTheirOrder) {
  std::vector<std::string_view> declared;
  for (const auto& topic : core::topics()) declared.push_back(topic.name);
  std::vector<std::string> planned;
  for (const auto& spec : topic_plan({})) planned.push_back(spec.name);
  EXPECT_THAT(planned, testing::ElementsAreArray(declared));
}

TEST(TopicPlan, AgesFollowTheConfiguration) {
  TopicsConfig cfg;
  cfg.telemetry_retention = std::chrono::hours{1};
  cfg.metrics_retention = std::chrono::hours{2};
  const auto plan = topic_plan(cfg);
  EXPECT_THAT(topic(plan, "telemetry").settings, Contains(Pair("retention.ms", "3600000")));
  EXPECT_THAT(topic(plan, "metrics").settings, Contains(Pair("retention.ms", "7200000")));
  // What the table of topics says is what nobody configured.
  for (const auto& declared : core::topics()) {
    if (declared.cleanup == core::TopicCleanup::compaction) continue;
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(declared.age);
    EXPECT_THAT(topic(topic_plan({}), declared.name).settings,
                Contains(Pair("retention.ms", std::to_string(age.count()))))
        << declared.name;
  }
}

TEST(TopicTable, HasARowPerTopic) {
  const std::string table = topic_table();
  EXPECT_THAT(table, HasSubstr("| `commands` | run uid and slot | `topics.partitions` | newest of "
                               "each key, 7d | what a run is to do"));
  EXPECT_THAT(table, HasSubstr("| `router-lease` | – | 1 | 1d | "));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'),
            static_cast<std::ptrdiff_t>(core::topics().size()) + 2);
}

TEST(TopicPlan, ATopicIsDeclaredOnce) {
  std::set<std::string_view> names;
  for (const auto& topic : core::topics()) {
    EXPECT_TRUE(names.insert(topic.name).second) << topic.name;
  }
}

TEST(TopicPlan, SettingsFollowTheTable) {
  TopicsConfig cfg;
  cfg.prefix = "acme";
  cfg.replication = 3;
  const auto plan = topic_plan(cfg);
  const auto commands = topic(plan, "commands");
  EXPECT_EQ(commands.full_name, "acme.commands.v1");
  EXPECT_EQ(commands.partitions, 24);
  EXPECT_TRUE(commands.compacted);
  EXPECT_THAT(commands.settings, Contains(Pair("cleanup.policy", "compact,delete")));
  EXPECT_THAT(commands.settings, Contains(Pair("retention.ms", "604800000")));
  EXPECT_THAT(commands.settings, Contains(Pair("min.insync.replicas", "2")));
  const auto state = topic(plan, "rules-state");
  EXPECT_THAT(state.settings, Contains(Pair("cleanup.policy", "compact")));
  EXPECT_THAT(state.settings, testing::Not(Contains(Pair("retention.ms", testing::_))));
  EXPECT_FALSE(topic(plan, "issues").compacted);
  EXPECT_EQ(topic(plan, "router-lease").partitions, 1);
  EXPECT_EQ(topic(plan, "rules-state").partitions, topic(plan, "telemetry").partitions);
}

TEST(TopicExport, SpeaksTheWordsOfEachTool) {
  const auto shell = export_topics("shell", {}, "kafka:9092");
  ASSERT_TRUE(shell);
  EXPECT_THAT(*shell, HasSubstr("--bootstrap-server kafka:9092 --create --if-not-exists --topic "
                                "tocsin.issues.v1 --partitions 24 --replication-factor 1 --config "
                                "cleanup.policy=delete --config retention.ms=2592000000"));
  const auto strimzi = export_topics("strimzi", {}, "");
  ASSERT_TRUE(strimzi);
  EXPECT_THAT(*strimzi, HasSubstr("kind: KafkaTopic\nmetadata:\n  name: tocsin.issues.v1\n"));
  EXPECT_THAT(*strimzi, HasSubstr("    cleanup.policy: \"compact\"\n"));
  const auto terraform = export_topics("terraform", {}, "");
  ASSERT_TRUE(terraform);
  EXPECT_THAT(*terraform, HasSubstr("resource \"kafka_topic\" \"tocsin_rules_state_v1\" {"));
  const auto text = export_topics("text", {}, "");
  ASSERT_TRUE(text);
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'),
            static_cast<std::ptrdiff_t>(core::topics().size()));
  const auto wrong = export_topics("pulumi", {}, "");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, core::Code::invalid_argument);
}

struct Parsed {
  TransportConfig transport;
  TopicsConfig topics;
  std::vector<std::string> problems;
};

Parsed parse(std::string_view yaml) {
  Parsed parsed;
  config::Diagnostics diagnostics;
  const auto document =
      config::Document::parse(yaml, "test.yaml", config::process_environment(), diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) {
      root.section("transport", "", [&](config::Reader& in) { read(in, parsed.transport); });
      root.section("topics", "", [&](config::Reader& in) { read(in, parsed.topics); });
    });
  }
  for (const auto& item : diagnostics.items()) parsed.problems.push_back(to_text(item));
  return parsed;
}

TEST(TransportSection, TakesLibrdkafkasOwnNames) {
  const auto parsed = parse(R"(
transport:
  kafka:
    bootstrap.servers: "kafka:9092"
    security.protocol: sasl_plaintext
    consumer: {fetch.wait.max.ms: 3}
topics: {prefix: acme, partitions: 6, telemetry_retention: 24h}
)");
  EXPECT_THAT(parsed.problems, testing::IsEmpty());
  EXPECT_FALSE(parsed.transport.kafka.is_null());
  EXPECT_EQ(parsed.topics.prefix, "acme");
  EXPECT_EQ(parsed.topics.partitions, 6);
  EXPECT_EQ(parsed.topics.telemetry_retention, std::chrono::hours{24});
}

TEST(TransportSection, SaysWhatLibrdkafkaSaysAboutAWrongProperty) {
  const auto parsed =
      parse("transport: {kafka: {bootstrap.servers: 'k:1', fetch.wait.max.mss: 3}}");
  ASSERT_THAT(parsed.problems, testing::SizeIs(1));
  EXPECT_THAT(parsed.problems[0],
              HasSubstr("transport.kafka.fetch.wait.max.mss: No such configuration property"));
  EXPECT_THAT(parsed.problems[0], HasSubstr("did you mean \"fetch.wait.max.ms\"?"));
  EXPECT_THAT(parsed.problems[0], HasSubstr(":1:67:")) << "where the property stands";
}

TEST(TransportSection, RefusesWhatItsGuaranteesRestOn) {
  const auto parsed = parse("transport: {kafka: {bootstrap.servers: 'k:1', group.id: mine}}");
  ASSERT_THAT(parsed.problems, testing::SizeIs(1));
  EXPECT_THAT(parsed.problems[0], HasSubstr("group.id: set by Tocsin itself"));
}

TEST(TransportSection, WantsServersAndReadsSecretsFromFiles) {
  EXPECT_THAT(parse("transport: {kafka: {client.rack: a}}").problems,
              testing::ElementsAre(HasSubstr("bootstrap.servers: missing")));
  EXPECT_THAT(
      parse("transport: {kafka: {bootstrap.servers: 'k:1', sasl.password_file: /no/such/file}}")
          .problems,
      testing::ElementsAre(HasSubstr("sasl.password_file")));
}

TEST(TransportSection, TakesOneOfKafkaAndJournal) {
  EXPECT_THAT(parse("transport: {journal: ./data}").problems, testing::IsEmpty());
  EXPECT_THAT(parse("transport: {journal: ./data, kafka: {bootstrap.servers: 'k:1'}}").problems,
              testing::SizeIs(1));
  EXPECT_THAT(parse("transport: {journal: ./data, journal_fsync: sometimes}").problems,
              testing::SizeIs(1));
}

TEST(TopicsSection, RefusesPrefixesThatNameNoTopic) {
  EXPECT_THAT(parse("topics: {prefix: 'a b'}").problems, testing::SizeIs(1));
  EXPECT_THAT(parse("topics: {partitions: 0}").problems, testing::SizeIs(1));
}

}  // namespace
}  // namespace tocsin::ingest
