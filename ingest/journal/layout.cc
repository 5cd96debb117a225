#include "ingest/journal/layout.h"

#include <algorithm>
#include <charconv>

namespace tocsin::ingest {
namespace {

std::optional<std::int64_t> setting(const TopicSpec& topic, std::string_view name) {
  for (const auto& [key, value] : topic.settings) {
    std::int64_t number = 0;
    if (key == name &&
        std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc{}) {
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string journal_path(const std::string& directory, JournalFile file) {
  return directory + (file == JournalFile::telemetry ? "/telemetry.db" : "/control.db");
}

JournalTopics journal_topics(const TopicsConfig& cfg) {
  JournalTopics topics;
  for (const auto& spec : topic_plan(cfg)) {
    JournalTopic topic;
    topic.name = topic.table = spec.name;
    std::replace(topic.table.begin(), topic.table.end(), '-', '_');
    topic.file =
        spec.origin == core::TopicOrigin::training ? JournalFile::telemetry : JournalFile::control;
    topic.compacted = spec.compacted;
    if (const auto age = setting(spec, "retention.ms")) {
      topic.retention = std::chrono::milliseconds(*age);
    }
    topic.max_bytes =
        static_cast<std::size_t>(setting(spec, "max.message.bytes").value_or(1 << 20));
    topics.emplace(topic.name, std::move(topic));
  }
  return topics;
}

}  // namespace tocsin::ingest
