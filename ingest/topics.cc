// The topics of core/topics.h as a cluster is to have them, and that plan in the words of other tools.
#include <algorithm>
#include <chrono>

#include "core/topics.h"
#include "ingest/transport.h"

namespace tocsin::ingest {
namespace {

using std::chrono::hours;

constexpr std::size_t kMaxTopicRecord = 1 << 20;

/// What the table says, or the configuration where it has a word for it.
core::Duration age(const TopicsConfig& cfg, const core::Topic& topic) {
  if (topic.name == core::topic::kTelemetry) return cfg.telemetry_retention;
  if (topic.name == core::topic::kMetrics) return cfg.metrics_retention;
  return topic.age;
}

std::string in_milliseconds(core::Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

TopicSpec spec(const TopicsConfig& cfg, const core::Topic& declared) {
  TopicSpec topic;
  topic.name = declared.name;
  topic.full_name = full_topic_name(cfg.prefix, declared.name);
  topic.partitions = declared.spread == core::TopicSpread::single ? 1 : cfg.partitions;
  topic.replication = cfg.replication;
  topic.compacted = declared.cleanup != core::TopicCleanup::age;
  topic.origin = declared.origin;
  auto& out = topic.settings;
  out.emplace_back("cleanup.policy", core::to_string(declared.cleanup));
  if (declared.cleanup != core::TopicCleanup::compaction) {
    out.emplace_back("retention.ms", in_milliseconds(age(cfg, declared)));
  }
  if (topic.compacted) {
    out.emplace_back("segment.bytes", std::to_string(64 << 20));
    out.emplace_back("min.cleanable.dirty.ratio", "0.2");
    out.emplace_back("delete.retention.ms", in_milliseconds(hours{24}));
  }
  out.emplace_back("max.message.bytes", std::to_string(kMaxTopicRecord));
  out.emplace_back("compression.type", "producer");
  out.emplace_back("message.timestamp.type", "CreateTime");
  if (cfg.replication >= 3) out.emplace_back("min.insync.replicas", "2");
  return topic;
}

std::string kept(const TopicsConfig& cfg, const core::Topic& topic) {
  const std::string days = core::to_text(age(cfg, topic));
  switch (topic.cleanup) {
    case core::TopicCleanup::age:
      return days;
    case core::TopicCleanup::compaction:
      return "newest of each key";
    case core::TopicCleanup::both:
      return "newest of each key, " + days;
  }
  return days;
}

std::string joined(const TopicSpec& topic, std::string_view between, std::string_view before,
                   std::string_view assign, std::string_view after) {
  std::string all;
  for (const auto& [name, value] : topic.settings) {
    if (!all.empty()) all += between;
    all += std::string(before) + name + std::string(assign) + value + std::string(after);
  }
  return all;
}

std::string as_shell(const TopicSpec& topic, std::string_view bootstrap) {
  std::string line = "kafka-topics.sh --bootstrap-server " + std::string(bootstrap) +
                     " --create --if-not-exists --topic " + topic.full_name + " --partitions " +
                     std::to_string(topic.partitions) + " --replication-factor " +
                     std::to_string(topic.replication);
  return line + " " + joined(topic, " ", "--config ", "=", "") + "\n";
}

std::string as_strimzi(const TopicSpec& topic) {
  return "---\napiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata:\n  name: " +
         topic.full_name +
         "\n  labels:\n    strimzi.io/cluster: my-cluster\nspec:\n  partitions: " +
         std::to_string(topic.partitions) + "\n  replicas: " + std::to_string(topic.replication) +
         "\n  config:\n" + joined(topic, "\n", "    ", ": \"", "\"") + "\n";
}

std::string as_terraform(const TopicSpec& topic) {
  std::string label = topic.full_name;
  std::replace_if(
      label.begin(), label.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return "resource \"kafka_topic\" \"" + label + "\" {\n  name               = \"" +
         topic.full_name + "\"\n  partitions         = " + std::to_string(topic.partitions) +
         "\n  replication_factor = " + std::to_string(topic.replication) + "\n  config = {\n" +
         joined(topic, "\n", "    \"", "\" = \"", "\"") + "\n  }\n}\n\n";
}

std::string as_text(const TopicSpec& topic) {
  std::string name = topic.full_name;
  name.resize(std::max<std::size_t>(name.size(), 32), ' ');
  return name + " partitions=" + std::to_string(topic.partitions) +
         " replication=" + std::to_string(topic.replication) + " " +
         joined(topic, " ", "", "=", "") + "\n";
}

std::string as_json(const std::vector<TopicSpec>& topics) {
  core::ValueList list;
  for (const TopicSpec& topic : topics) {
    core::ValueMap settings;
    for (const auto& [key, value] : topic.settings) settings.emplace_back(key, value);
    list.push_back(core::ValueMap{{"topic", topic.full_name},
                                  {"partitions", std::int64_t{topic.partitions}},
                                  {"settings", std::move(settings)}});
  }
  return core::to_json(core::Value(std::move(list))) + "\n";
}

}  // namespace

void read(config::Reader& in, TopicsConfig& cfg) {
  in.optional("prefix", cfg.prefix, config::not_empty(),
              "first part of every topic's name: <prefix>.<name>.v1");
  in.optional("partitions", cfg.partitions, config::between(1, 10'000),
              "partitions of every keyed topic; part of the state, so never changed in place");
  in.optional("replication", cfg.replication, config::between(1, 32),
              "replicas of each partition; 3 in production (min.insync.replicas is then 2)");
  in.optional("create", cfg.create, "create missing topics at start");
  in.optional("telemetry_retention", cfg.telemetry_retention, config::positive(),
              "how long `telemetry` is kept");
  in.optional("metrics_retention", cfg.metrics_retention, config::positive(),
              "how long `metrics` is kept");
  const bool bad_character = std::any_of(cfg.prefix.begin(), cfg.prefix.end(), [](unsigned char c) {
    return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' &&
           c != '-' && c != '_';
  });
  if (bad_character) in.error("prefix", "only letters, digits, '.', '-' and '_' name a topic");
}

std::string full_topic_name(std::string_view prefix, std::string_view name) {
  std::string full(prefix);
  full += '.';
  full += name;
  full += ".v1";
  return full;
}

std::vector<TopicSpec> topic_plan(const TopicsConfig& cfg) {
  std::vector<TopicSpec> plan;
  for (const core::Topic& topic : core::topics()) plan.push_back(spec(cfg, topic));
  return plan;
}

std::string topic_table() {
  const TopicsConfig cfg;
  std::string out =
      "| Topic | Key | Partitions | Kept | Holds | Written by | Read by | Journal |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const core::Topic& topic : core::topics()) {
    const auto cell = [&](std::string_view text) {
      out.append(text.empty() ? "–" : text).append(" | ");
    };
    out.append("| `").append(topic.name).append("` | ");
    cell(topic.key);
    cell(topic.spread == core::TopicSpread::single ? "1" : "`topics.partitions`");
    cell(kept(cfg, topic));
    cell(topic.holds);
    cell(topic.writers);
    cell(topic.readers);
    const bool training = topic.origin == core::TopicOrigin::training;
    cell(training ? "`telemetry.db`" : "`control.db`, synced");
    out.back() = '\n';
  }
  return out;
}

core::Result<std::string> export_topics(std::string_view format, const TopicsConfig& cfg,
                                        std::string_view bootstrap) {
  if (format == "json") return as_json(topic_plan(cfg));
  std::string text;
  for (const TopicSpec& topic : topic_plan(cfg)) {
    if (format == "shell") {
      text += as_shell(topic, bootstrap);
    } else if (format == "strimzi") {
      text += as_strimzi(topic);
    } else if (format == "terraform") {
      text += as_terraform(topic);
    } else if (format == "text") {
      text += as_text(topic);
    } else {
      return core::invalid_argument("unknown format \"" + std::string(format) +
                                    "\"; expected strimzi, shell, terraform, json or text");
    }
  }
  return text;
}

}  // namespace tocsin::ingest
